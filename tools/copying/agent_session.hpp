// An agent's conversation with one client.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "agent/agent_message.hpp"
#include "copying/agent_copy.hpp"
#include "copying/fetch_rules.hpp"
#include "copying/hosted_ends.hpp"
#include "copying/server_clients.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Answers one question after the other; what was begun for the client ends with it.
/// Lifetime: what is referred to, until it is gone.
class agent_session {
 public:
  /// `needs_tickets`: it acts by tickets only.
  agent_session(pipe_streambuf& client, const url& own_server, const fetch_rules& rules,
                bool needs_tickets)
      : client_(client), own_server_(own_server), rules_(rules), needs_tickets_(needs_tickets) {}

  /// Returns when the client has ended, or says what can not be understood. Errors: failure, of the
  /// pipe.
  void run();

 private:
  agent_message answer(const agent_message& question);
  nlohmann::json greet(const nlohmann::json& question);
  void begin_copy(const nlohmann::json& question);
  agent_copy& copy();
  std::optional<server_tickets> own_ticket() const;

  pipe_streambuf& client_;
  const url& own_server_;
  const fetch_rules& rules_;
  const bool needs_tickets_;
  bool is_greeted_ = false;
  std::optional<agent_copy> copy_;
  std::optional<hosted_ends> ends_;
};

}  // namespace ucx::tool
