// The signals that ask a server to end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace ucx::tool {

/// Ends the process as `signal` does where it is not caught.
[[noreturn]] void end_by(int signal);

/// Has the signals that ask a program to end do that also where the kernel keeps them from it. The
/// first process of a container, of number 1, gets only those that it has a handler for.
void end_by_signals() noexcept;

/// Returns whether `signal` is ignored (SIG_IGN).
bool is_ignored(int signal) noexcept;

/// Takes SIGINT, SIGTERM and SIGHUP out of their usual course. Until `expect()` they end the
/// process at once, as everywhere; from then on `wait_for()` returns when one has come. SIGHUP
/// stays ignored where it was, as by `nohup`; SIGINT does not, which shells have scripts'
/// background jobs ignore. Where a hangup is a wish to look at settings again, SIGHUP ends nothing.
/// REQUIRES: made before any other thread, which inherits that.
///
///     from     | to       | when
///     usual    | expected | `expect()`; before it a signal ends the process
///     expected | came     | the first signal
///     came     | taken    | `wait_for()` returns; a signal that is not taken ends the process
///     expected | left     | `wait_for()` returns because of `end()`
///     left     | taken    | a signal: the process is ending anyway
class shutdown_signals {
 public:
  /// A signal that `wait_for()` does not take within `limit` ends the process after all. The work
  /// between `expect()` and that may wait for a peer that never comes.
  explicit shutdown_signals(std::chrono::nanoseconds limit, bool looks_at_hangup = false);
  shutdown_signals(const shutdown_signals&) = delete;
  shutdown_signals& operator=(const shutdown_signals&) = delete;
  /// Gives them their usual course back, unless one has come: the process is ending orderly then.
  ~shutdown_signals();

  void expect();
  /// Returns true when one of them has come since `expect()`, or `end()` was called. Returns false
  /// when that was not so within `limit`, or there was a hangup that is looked at.
  bool wait_for(std::chrono::nanoseconds limit);
  /// Returns whether there was such a hangup since the last time.
  bool take_hangup();
  /// Ends the wait without a signal. Safe from any thread.
  void end();

 private:
  enum class stage { usual, expected, came, taken, left };
  void watch(const std::stop_token& over, std::chrono::nanoseconds limit);
  bool note_hangup();
  bool has_come() const noexcept { return stage_ == stage::came || stage_ == stage::taken; }

  std::mutex mutex_;
  std::condition_variable_any changes_;
  const bool outlives_terminal_;
  const bool looks_at_hangup_;
  stage stage_ = stage::usual;
  bool ends_ = false;  // somebody wants it, whether or not one comes
  bool hung_up_ = false;
  ::sigset_t set_;
  ::sigset_t before_;
  std::jthread watch_;
};

/// Ends the process if this object still lives `limit` after `begin()`: what is orderly must not
/// take longer than people wait.
class patience {
 public:
  /// Starts its thread: when the process ends there may be none to be had.
  explicit patience(std::chrono::nanoseconds limit);
  /// The time runs from here on; `exit_code` is what the process ends with when it is over.
  void begin(int exit_code) noexcept;

 private:
  void watch(const std::stop_token& over, std::chrono::nanoseconds limit);

  std::mutex mutex_;
  std::condition_variable_any begins_;
  std::optional<int> exit_code_;  // none: it has not begun
  std::jthread watch_;
};

}  // namespace ucx::tool
