// A copy that an agent carries out for a client.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include "copying/copy_request.hpp"
#include "copying/copy_run.hpp"
#include "copying/server_clients.hpp"
#include "output/exit_code.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

/// Runs from the beginning on, on separate threads, until it is over or destroyed.
class agent_copy {
 public:
  /// `tickets`: of an agent that needs them. Errors: failure with exit_code::usage.
  agent_copy(const copy_request& asked, const std::optional<server_tickets>& tickets);
  agent_copy(const agent_copy&) = delete;
  agent_copy& operator=(const agent_copy&) = delete;
  /// Ends it, as somebody's Ctrl-C would.
  ~agent_copy();

  /// Waits a moment for news, and returns how far it is; `over` where the rest was told.
  nlohmann::json look();
  /// Lets it end; `look()` tells when it has.
  void stop();

 private:
  void run();
  void say(const failure& why);
  void hurry(const std::stop_token& asked_to);

  const copy_order order_;
  server_clients clients_;
  transfer_counters counters_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<failure> said_;  // and not told yet
  std::optional<failure> outcome_;
  bool over_ = false;
  bool left_something_ = false;
  std::jthread hurrying_;  // it may wait for a lock; at the end there may be no thread to be had
  std::jthread running_;
};

/// Reads what `look()` has said: sets the counters, calls `tell` with what was left out, and
/// returns whether it is over. Errors: bad_message.
bool take_news(const nlohmann::json& news, transfer_counters& counters,
               const copy_run::report& tell);

}  // namespace ucx::tool
