// The caller's own event loop, as a program with a worker of mode `external` would write it.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "ucx/worker.hpp"

namespace ucx::test {

/// Drives a worker from a thread of its own by `event_fd()`, `arm()` and `progress()`. While it
/// runs, nothing else may use the worker but `post()` and `signal()`.
class event_loop {
 public:
  explicit event_loop(worker& driven);
  /// Stops; the worker may be used by other threads then.
  ~event_loop();
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;

  /// How often the loop slept until a wake-up or a deadline came.
  std::uint64_t sleeps() const noexcept { return sleeps_.load(); }

 private:
  void run(const std::stop_token& stop);

  worker& driven_;
  std::atomic<std::uint64_t> sleeps_{0};
  std::jthread thread_;
};

}  // namespace ucx::test
