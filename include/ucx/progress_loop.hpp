#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
struct core_access;
}

/// Drives several workers on one thread, and sleeps while none of them has anything to do.
/// Threads: one at a time. Handlers of the loop's workers may call anything but `run` and
/// `run_once`. They may destroy the loop: `run` and `run_once` then return after the round.
class UCXIO_EXPORT progress_loop {
 public:
  progress_loop();
  progress_loop(progress_loop&& other) noexcept;
  progress_loop& operator=(progress_loop&& other) noexcept;
  ~progress_loop();

  /// Adds a worker of mode `caller` or `external`, and keeps its core alive.
  /// Errors: invalid_argument (the worker has a thread), closed (it was moved from).
  void add(const worker& driven, std::error_code& ec = throws);
  /// Removes a worker, if it is there.
  void remove(const worker& driven) noexcept;

  /// Drives until `stop` is requested, from any thread, or no worker is left. If a worker's context
  /// lacks `feature::wakeup`, the loop sleeps for half a millisecond at most.
  /// Errors: would_deadlock inside a handler of one of the workers.
  void run(std::stop_token stop, std::error_code& ec = throws);

  /// Makes one round of each worker. If none had anything to do, sleeps until one has, `limit` at
  /// most, and makes another round. Returns whether anything happened.
  /// Errors: those of `run`.
  bool run_once(std::chrono::nanoseconds limit = std::chrono::nanoseconds::zero(),
                std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
  [[deprecated("nothing takes its place")]] std::uint64_t rounds() const noexcept;
#endif

 private:
  friend struct detail::core_access;
  struct state;
  std::shared_ptr<state> state_;  // `run` and `run_once` hold it, too: a handler may destroy this
};

}  // namespace ucx
