// Ends of a client's copies that an agent holds for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent_message.hpp"
#include "copying/copy_ends.hpp"
#include "copying/server_clients.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Does what `agent_ends.cpp` asks for. Bytes that a lost client has written may be resumed, if it
/// wanted that.
class hosted_ends {
 public:
  /// `tickets`: of an agent that needs them.
  hosted_ends(const url& own_server, const std::optional<server_tickets>& tickets);
  hosted_ends(const hosted_ends&) = delete;
  hosted_ends& operator=(const hosted_ends&) = delete;
  ~hosted_ends();

  /// Returns the answer; nothing where this is no question about ends. Errors: bad_message; those
  /// of the ends.
  std::optional<agent_message> answer(const agent_message& question);

 private:
  using json = nlohmann::json;
  using call = agent_message (hosted_ends::*)(const agent_message&);

  static const std::map<std::string, call>& calls();
  agent_message open_source(const agent_message& question);
  agent_message read(const agent_message& question);
  agent_message source_digests(const agent_message& question);
  agent_message facts(const agent_message& question);
  agent_message check_unchanged(const agent_message& question);
  agent_message close_source(const agent_message& question);
  agent_message open_target(const agent_message& question);
  agent_message target_digests(const agent_message& question);
  agent_message begin(const agent_message& question);
  agent_message write(const agent_message& question);
  agent_message complete(const agent_message& question);
  agent_message commit(const agent_message& question);
  agent_message keep(const agent_message& question);
  agent_message close_target(const agent_message& question);

  std::uint64_t new_id();
  location place_of(const std::string& name) const;
  copy_source& source(const json& question);
  copy_target& target(const json& question);

  const url own_server_;
  server_clients clients_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<copy_source>> sources_;
  std::map<std::uint64_t, std::unique_ptr<copy_target>> targets_;
};

}  // namespace ucx::tool
