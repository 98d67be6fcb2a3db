#include "agent/agent_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ios>
#include <random>
#include <string>
#include <string_view>

#include "agent/agent_message.hpp"
#include "output/exit_code.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

constexpr const char* calls_name = ".ucxio-agent";
constexpr std::size_t caller_digits = 32;
constexpr std::string_view digits = "0123456789abcdef";

/// A client that has called is there within this.
constexpr std::chrono::seconds most_for_a_caller{10};

/// Of either side's memory, for what the other one says without waiting: one message, as there is
/// one question at a time.
constexpr std::size_t window =
    agent_message::longest_header + agent_message::longest_payload + (std::size_t{64} << 10U);

std::string new_caller() {
  std::random_device random;
  std::string name;
  while (name.size() < caller_digits) name += digits[random() % digits.size()];
  return name;
}

url place_of(const url& server, const std::string& caller) {
  return server.with_name(std::string(calls_name) + '/' + caller);
}

[[noreturn]] void tell_missing(const url& server, const error& why) {
  if (why.code() == errc::not_supported) {
    throw failure(exit_code::failure,
                  fmt::format("{}: the server has no agent; `ucxio serve --agent` has one",
                              ucx::to_string(server)));
  }
  const exit_code code = exit_code_of(why.code());
  if (why.code() == errc::not_secure) {
    throw failure(code, fmt::format("{}: the agent came by the server's Unix socket, this command "
                                    "by TLS; `ucxio serve --agent --tls` has an agent for it",
                                    ucx::to_string(server)));
  }
  if (code != exit_code::timed_out) throw failure(code, why.what());
  throw failure(code, fmt::format("{}; has the server an agent (`ucxio serve --agent`) that does "
                                  "not serve too many others?",
                                  why.what()));
}

}  // namespace

pipe_streambuf call_agent(const url& server, const client_settings& settings,
                          const std::stop_token& stop) {
  const client_options asked = settings.options();
  pipe_options options;
  options.context = asked.context;  // by the same way and token as the rest of the command
  options.window = window;
  options.connect_timeout = asked.worker.connect_timeout;
  options.stop = stop;
  try {
    const std::string caller = new_caller();
    pipe_streambuf call(server.with_name(calls_name), std::ios_base::out, options);
    call.sputn(caller.data(), static_cast<std::streamsize>(caller.size()));
    call.close();
    return {place_of(server, caller), std::ios_base::in | std::ios_base::out, options};
  } catch (const error& why) {
    tell_missing(server, why);
  }
}

pipe_streambuf await_call(const url& own_server, const std::stop_token& stop) {
  pipe_options options;
  options.window = pipe_options::min_window;
  options.connect_timeout = std::chrono::hours(1);
  options.timeout = most_for_a_caller;
  options.stop = stop;
  return {own_server.with_name(calls_name), std::ios_base::in, options};
}

pipe_streambuf answer_call(pipe_streambuf call, const url& own_server,
                           const std::stop_token& stop) {
  std::string caller(caller_digits, '\0');
  const std::streamsize came = call.sgetn(caller.data(), caller_digits);
  if (came != caller_digits || caller.find_first_not_of(digits) != caller.npos) {
    throw bad_message("nobody has such a name");
  }
  call.close();
  pipe_options options;
  options.window = window;
  options.connect_timeout = most_for_a_caller;
  options.stop = stop;
  return {place_of(own_server, caller), std::ios_base::in | std::ios_base::out, options};
}

}  // namespace ucx::tool
