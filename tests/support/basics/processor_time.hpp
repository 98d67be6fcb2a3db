// How long a thread was on a processor: what other programs take of a busy machine does not count.
#pragma once

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <optional>

namespace ucx::test {

/// The processor time of the thread that made this. Threads: any may read it.
class processor_time {
 public:
  processor_time() noexcept { ::pthread_getcpuclockid(::pthread_self(), &clock_); }

  std::chrono::nanoseconds now() const noexcept {
    ::timespec told{};
    ::clock_gettime(clock_, &told);
    return std::chrono::seconds(told.tv_sec) + std::chrono::nanoseconds(told.tv_nsec);
  }

 private:
  ::clockid_t clock_{};
};

/// How long this thread works behind a moment, as it finds by looking again and again.
class work_behind {
 public:
  explicit work_behind(std::chrono::steady_clock::time_point moment) noexcept : moment_(moment) {}

  std::chrono::nanoseconds look() noexcept {
    if (std::chrono::steady_clock::now() < moment_) return std::chrono::nanoseconds::zero();
    if (!began_) began_ = time_.now();
    return time_.now() - *began_;
  }

 private:
  std::chrono::steady_clock::time_point moment_;
  processor_time time_;
  std::optional<std::chrono::nanoseconds> began_;
};

}  // namespace ucx::test
