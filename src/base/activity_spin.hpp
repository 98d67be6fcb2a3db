// How long a thread of a worker's, which has found something to do, looks for more before it
// sleeps.
#pragma once

#include <chrono>

#include "base/time_source.hpp"

namespace ucx::detail {

/// Where another core can do what is waited for, what comes next is found sooner by looking than by
/// being woken. Where the core is wanted it may be that thread's work, and looking only delays it:
/// then no more until something was found again.
class activity_spin {
 public:
  /// `cores` of the machine. Begins as if something had just been found.
  activity_spin(time_source& time, std::chrono::nanoseconds longest, unsigned cores)
      : time_(time), longest_(longest), pays_(cores > 1), last_(time.now()) {}

  /// A round found something.
  void begin_again() {
    active_ = true;
    last_ = time_.now();
  }
  /// After a round that found nothing: returns whether it is time to sleep. Else it has given way
  /// to others.
  bool time_to_sleep() {
    if (!active_ || !pays_ || time_.now() - last_ >= longest_) return true;
    if (time_.relax()) active_ = false;
    return false;
  }
  void slept() noexcept { active_ = false; }

 private:
  time_source& time_;
  const std::chrono::nanoseconds longest_;
  const bool pays_;
  bool active_ = true;  // since it slept, or since somebody wanted the core
  clock::time_point last_;
};

}  // namespace ucx::detail
