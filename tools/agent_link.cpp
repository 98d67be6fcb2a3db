#include "agent_link.hpp"

#include <optional>
#include <utility>

#include "agent_call.hpp"

namespace ucx::tool {

agent_link::agent_link(const url& server, const client_settings& settings,
                       const std::stop_token& stop)
    : server_(server), pipe_(call_agent(server, settings, stop)) {
  ask({{"ask", "hello"}, {"version", agent_version}});
}

agent_message agent_link::ask(const nlohmann::json& question, std::span<const std::byte> payload) {
  const std::lock_guard guard(mutex_);
  send_message(pipe_, question, payload);
  std::optional<agent_message> answer = receive_message(pipe_);
  if (!answer) {
    throw failure(exit_code::connection_lost, to_string(server_) + ": its agent has ended");
  }
  throw_failed(answer->header);
  return std::move(*answer);
}

}  // namespace ucx::tool
