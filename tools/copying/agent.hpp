// Copies for clients in a server's process, with the rights of a client of that server.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
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

  /// `needs_tickets`: it acts by tickets only.
  /// Errors: those of client, where the server can not be reached by its own URL.
  agent(const url& own_server, fetch_rules rules, bool needs_tickets);
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;
  /// Ends everything that it does for clients, as Ctrl-C would, and waits for that.
  ~agent();

 private:
  struct session {
    bool is_over = false;
    std::jthread thread;
  };

  void wait_for_calls();
  void begin(pipe_streambuf call);
  void serve(pipe_streambuf call) noexcept;
  void clear_away();

  const url own_server_;
  const fetch_rules rules_;
  const bool needs_tickets_;
  std::stop_source end_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<session> sessions_;
  std::jthread waiting_;
};

}  // namespace ucx::tool
