#include "copying/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/agent_call.hpp"
#include "agent/agent_link.hpp"
#include "copying/agent_session.hpp"
#include "output/exit_code.hpp"
#include "process/client_settings.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

/// A failure at the broker, such as a client that died while it was introduced, is followed by a
/// pause before the next try.
constexpr std::chrono::milliseconds pause{50};

}  // namespace

agent::agent(const url& own_server, fetch_rules rules, bool needs_tickets)
    : own_server_(own_server), rules_(std::move(rules)), needs_tickets_(needs_tickets) {
  client_settings().connect(own_server);
  waiting_ = std::jthread([this] { wait_for_calls(); });
  if (!needs_tickets_) return;
  try {
    check();
  } catch (...) {
    end_.request_stop();
    waiting_.join();
    throw;
  }
}

/// The server alone knows what this process is to it.
void agent::check() {
  try {
    const agent_link own(own_server_, client_settings(), refused_.get_token());
    return;
  } catch (const failure& why) {
    if (!refused_.stop_requested() && why.code() != exit_code::permission) return;
  } catch (const error&) {
    if (!refused_.stop_requested()) return;
  }
  const std::string who = client_settings().connect(own_server_).identity();
  throw failure(exit_code::usage,
                fmt::format("--rules: they let no agent serve, which is {} at its server: `allow "
                            "{} all **` before the line that denies it would",
                            who, who.starts_with("owner") ? "owner" : "anybody"));
}

agent::~agent() {
  end_.request_stop();
  waiting_.join();
}

void agent::wait_for_calls() {
  const std::stop_token end = end_.get_token();
  while (!end.stop_requested()) {
    {
      std::unique_lock guard(mutex_);
      clear_away();
      changed_.wait(guard, end, [this] {
        clear_away();
        return sessions_.size() < most_sessions;
      });
    }
    try {
      if (end.stop_requested()) return;
      begin(await_call(own_server_, end));
      is_refused_ = false;
    } catch (const error& why) {
      fail_to_wait(why.code());
    } catch (const std::exception&) {
      fail_to_wait({});
    }
  }
}

void agent::fail_to_wait(const std::error_code& why) {
  if (why == errc::permission_denied) {
    is_refused_ = true;
    refused_.request_stop();
  }
  std::unique_lock guard(mutex_);
  changed_.wait_for(guard, end_.get_token(), pause, [] { return false; });
}

void agent::begin(pipe_streambuf call) {
  const std::lock_guard guard(mutex_);
  session& made = sessions_.emplace_back();
  try {
    made.thread = std::jthread([this, &made, call = std::move(call)]() mutable {
      serve(std::move(call));
      const std::lock_guard over(mutex_);
      made.is_over = true;
      changed_.notify_all();
    });
  } catch (const std::exception&) {  // the system has no more threads
    sessions_.pop_back();
    throw;
  }
}

void agent::clear_away() {
  sessions_.remove_if([](const session& each) { return each.is_over; });
}

void agent::serve(pipe_streambuf call) noexcept {
  try {
    pipe_streambuf client = answer_call(std::move(call), own_server_, end_.get_token());
    agent_session(client, own_server_, rules_, needs_tickets_).run();
  } catch (const std::exception&) {  // the client knows, or is not there any more
  }
}

}  // namespace ucx::tool
