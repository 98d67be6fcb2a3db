#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/worker.hpp"

namespace ucx {

/// Drives several workers on one thread, and sleeps while none of them has anything to do.
/// Threads: one at a time; handlers of its workers may call anything but `run` and `run_once`, and
/// may destroy it: then those return behind the round.
class UCXIO_EXPORT progress_loop {
 public:
  progress_loop();
  progress_loop(progress_loop&& other) noexcept;
  progress_loop& operator=(progress_loop&& other) noexcept;
  ~progress_loop();

  /// Adds a worker of mode `caller` or `external`, whose core is kept.
  /// Errors: invalid_argument (a thread of its own drives it), closed (it was moved from).
  void add(const worker& driven);
  void add(const worker& driven, std::error_code& ec);
  /// Takes a worker out, if it is there.
  void remove(const worker& driven) noexcept;

  /// Drives until `stop` is requested, from any thread, or no worker is left. A worker whose
  /// context lacks `feature::wakeup` keeps the loop from sleeping for longer than half a
  /// millisecond.
  /// Errors: would_deadlock inside a handler of one of its workers.
  void run(std::stop_token stop);
  void run(std::stop_token stop, std::error_code& ec);

  /// Makes one round of each worker; if none had anything to do, sleeps until one has, `longest` at
  /// most, and makes another. Returns whether anything happened. Errors: as run.
  bool run_once(std::chrono::nanoseconds longest = std::chrono::nanoseconds::zero());
  bool run_once(std::chrono::nanoseconds longest, std::error_code& ec);

  /// Returns how often it has looked at its workers: idle loops do so a few times a second.
  std::uint64_t rounds() const noexcept;

 private:
  struct state;
  std::shared_ptr<state>
      state_;  // also of `run` and `run_once`, in which a handler may destroy this
};

}  // namespace ucx
