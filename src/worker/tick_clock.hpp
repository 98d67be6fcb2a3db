// When a worker's rounds have to look at deadlines.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/time_source.hpp"

namespace ucx::detail {

/// Reading the clock costs as much as a round that finds nothing. So it is read where there is a
/// deadline only, and the cheap one first, which may be a tick off. Under the worker's lock.
class tick_clock {
 public:
  explicit tick_clock(time_source& time) noexcept : time_(time) {}
  tick_clock(const tick_clock&) = delete;
  tick_clock& operator=(const tick_clock&) = delete;

  /// Returns about when it was at the last look.
  clock::time_point last_look() const noexcept { return last_look_; }
  /// Returns whether a deadline has come. Then `last_look()` says when it is, and the caller sees
  /// to what is due, and says so.
  bool take_due() noexcept {
    if (next_ == clock::time_point::max()) return false;
    last_look_ = time_.now_or_soon();
    if (last_look_ < next_) return false;
    last_look_ = time_.now();
    if (last_look_ < next_) return false;
    next_ = clock::time_point::max();
    return true;
  }
  /// There is a deadline then, too; returns whether it is the first.
  bool tick_by(clock::time_point when) noexcept {
    if (when >= next_) return false;
    next_ = when;
    return true;
  }
  /// The caller has seen to what was due. `first` is the first deadline that is left, besides those
  /// that came meanwhile.
  void seen_to(clock::time_point first) noexcept {
    // Something may be past its deadline for good reason (UCX has to let go first): no busy loop.
    next_ = std::max(std::min(next_, first), last_look_ + std::chrono::milliseconds(1));
  }
  /// Returns how long there is nothing to see to.
  std::chrono::nanoseconds until_next() noexcept {
    if (next_ == clock::time_point::max()) return std::chrono::nanoseconds::max();
    const clock::time_point now = time_.now();
    if (next_ > now) return next_ - now;
    // The clock that rounds look at first may be behind: the next one looks at this one.
    next_ = clock::time_point::min();
    return std::chrono::nanoseconds::zero();
  }
  /// Returns when what may take so long has to end.
  clock::time_point deadline_after(std::chrono::nanoseconds timeout) noexcept {
    last_look_ = timeout < near_deadline ? time_.now() : time_.now_or_soon();
    return after(last_look_, timeout);
  }

 private:
  /// Deadlines that are further away may be a clock's tick late.
  static constexpr std::chrono::seconds near_deadline{1};

  time_source& time_;
  clock::time_point next_ = clock::time_point::max();
  clock::time_point last_look_;
};

}  // namespace ucx::detail
