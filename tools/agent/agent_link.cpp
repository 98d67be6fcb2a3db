#include "agent/agent_link.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "agent/agent_call.hpp"

namespace ucx::tool {

agent_link::agent_link(const url& server, const client_settings& settings,
                       const std::stop_token& stop)
    : server_(server), pipe_(call_agent(server, settings, stop)) {
  const nlohmann::json said = ask({{"ask", "hello"}, {"version", agent_version}}).header;
  needs_tickets_ = said.contains("needs_tickets") && flag_in(said, "needs_tickets");
}

agent_message agent_link::ask(const nlohmann::json& question, std::span<const std::byte> payload) {
  const std::lock_guard guard(mutex_);
  std::optional<agent_message> answer;
  try {
    send_message(pipe_, question, payload);
    answer = receive_message(pipe_);
  } catch (const bad_message&) {
    throw;
  } catch (const std::exception&) {
    if (!pipe_.error() || exit_code_of(pipe_.error()) != exit_code::connection_lost) throw;
    // The name of the pipe between them, and how far that came, say nothing to a user.
    throw failure(exit_code::connection_lost,
                  to_string(server_) + ": its agent was lost (" + pipe_.error().message() + ')');
  }
  if (!answer) {
    throw failure(exit_code::connection_lost, to_string(server_) + ": its agent has ended");
  }
  throw_failed(answer->header);
  return std::move(*answer);
}

}  // namespace ucx::tool
