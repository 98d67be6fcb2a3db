// Points in time that lie some duration ahead: durations are users', and may be as long as they go.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.hpp"

namespace ucx::detail {

/// Returns `now + duration`, or the end of time where that does not reach so far.
inline clock::time_point after(clock::time_point now, std::chrono::nanoseconds duration) noexcept {
  return duration > clock::time_point::max() - now ? clock::time_point::max() : now + duration;
}

/// Returns the share of `left` that the next of `among` attempts may take: none where nothing is
/// left.
inline std::chrono::nanoseconds share_of(std::chrono::nanoseconds left,
                                         std::size_t among) noexcept {
  if (left <= left.zero() || among == 0) return left.zero();
  return left / static_cast<std::chrono::nanoseconds::rep>(among);
}

}  // namespace ucx::detail
