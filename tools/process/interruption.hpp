// The interruption of a command in the middle of work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "output/progress_line.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

/// Takes SIGINT, SIGTERM and SIGHUP, but those that were ignored from the start, out of their usual
/// course. The work is told to stop, leaves what has to be left, and then ends the process as the
/// signal would have. REQUIRES: made before any other thread, which inherits that.
class interruption {
 public:
  /// `hurry` is called on another thread, with the signal that has come, and makes the work look at
  /// `token()`. It may wait for what holds a lock, as connecting does. Another signal, half a
  /// second later or more, ends the process at once, and so does work that goes on for `limit`.
  /// Signals that come sooner are the same wish, which schedulers tell a process and its group.
  explicit interruption(std::function<void(int)> hurry,
                        std::chrono::nanoseconds limit = std::chrono::seconds(5));
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption();

  bool requested() const noexcept { return stop_.stop_requested(); }
  std::stop_token token() const noexcept { return stop_.get_token(); }
  /// Returns the signal that came. REQUIRES: requested().
  int signal() const noexcept { return signal_; }
  /// Ends the process as the signal that came does where it is not caught. REQUIRES: requested().
  [[noreturn]] void end() const;

 private:
  void watch(const std::stop_token& over, std::chrono::nanoseconds limit);

  std::function<void(int)> hurry_;
  std::stop_source stop_;
  std::atomic<int> signal_{0};
  ::sigset_t set_;
  ::sigset_t ignored_;
  ::sigset_t before_;
  std::mutex mutex_;
  std::condition_variable_any comes_;
  std::jthread
      hurrying_;  // it may wait for a lock; when a signal comes there may be none to be had
  std::jthread watch_;
};

/// Runs `work`, which counts; shows how far it is, and how it ended. A signal ends the process at
/// once, as always; what is shown says so. Errors: those of `work`. REQUIRES: called before any
/// other thread is made, which inherits what is done about signals.
void run_watched(progress_mode mode, const transfer_counters& counters, bool may_be_drawn,
                 const std::function<void(progress_line&)>& work);

}  // namespace ucx::tool
