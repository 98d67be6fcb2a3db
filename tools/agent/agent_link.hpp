// A client's conversation with a server's agent.
#pragma once

#include <cstddef>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <stop_token>

#include "agent/agent_message.hpp"
#include "process/client_settings.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// One question at a time, each of which is answered. The agent's part is `agent_session`. Safe
/// from any thread.
class agent_link {
 public:
  /// `stop` ends whatever waits. Errors: as call_agent; failure with
  /// exit_code::no_connection, where the agent is of another version.
  agent_link(const url& server, const client_settings& settings, const std::stop_token& stop);

  /// Returns the answer. Errors: what the agent says has failed; failure with
  /// exit_code::connection_lost, where it is not there any more; bad_message.
  agent_message ask(const nlohmann::json& question, std::span<const std::byte> payload = {});

  /// Returns whether the agent acts by tickets only.
  bool needs_tickets() const noexcept { return needs_tickets_; }
  /// Returns what only the two sides of the conversation know. Lifetime: this object's.
  std::span<const std::byte> key() const noexcept { return pipe_.meeting_key(); }

 private:
  const url server_;
  std::mutex mutex_;
  pipe_streambuf pipe_;
  bool needs_tickets_ = false;
};

}  // namespace ucx::tool
