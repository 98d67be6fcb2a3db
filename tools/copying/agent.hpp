// Copies for clients in a server's process, with the rights of a client of that server.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "copying/fetch_rules.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Waits for clients at a name of the server's pipes, and serves each of them on a separate thread.
/// REQUIRES: the server has a `pipe_broker`, for as long as this lives.
class agent {
 public:
  /// Clients at a time; the next ones wait.
  static constexpr std::size_t most_sessions = 16;

  /// `needs_tickets`: it acts by tickets only. Then it calls itself once, to learn what the rules
  /// say of it. Errors: those of client, where the server can not be reached by its own URL;
  /// failure with exit_code::usage, where the rules let it take no calls.
  agent(const url& own_server, fetch_rules rules, bool needs_tickets);
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;
  /// Ends everything that it does for clients, as Ctrl-C would, and waits for that.
  ~agent();

  /// Returns whether the rules let it take no calls, as far as it has found out.
  bool is_refused() const noexcept { return is_refused_; }

 private:
  struct session {
    bool is_over = false;
    std::jthread thread;
  };

  void check();
  void wait_for_calls();
  void fail_to_wait(const std::error_code& why);
  void begin(pipe_streambuf call);
  void serve(pipe_streambuf call) noexcept;
  void clear_away();

  const url own_server_;
  const fetch_rules rules_;
  const bool needs_tickets_;
  std::stop_source end_;
  std::stop_source refused_;  // once it was
  std::atomic<bool> is_refused_{false};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<session> sessions_;
  std::jthread waiting_;
};

}  // namespace ucx::tool
