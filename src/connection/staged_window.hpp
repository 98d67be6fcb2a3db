// How many bytes of emulated reads UCX has at once.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace ucx::detail {

/// As many as could move in the time of one piece that was alone. More of them would only wait, and
/// their rooms would leave the processor's cache before they are copied. The shortest such time of
/// the last ten seconds counts.
class staged_window {
 public:
  /// The least and the most; pieces are at most half as long as the least.
  constexpr staged_window(std::size_t least, std::size_t most) noexcept
      : least_(least), most_(most), bytes_(most) {}

  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns whether the next piece should be alone, so that its time tells.
  bool is_old(clock::time_point now) const noexcept {
    return took_ != clock::duration::max() && now - measured_at_ > lasts;
  }
  /// A piece that was alone from its start to its end, or the first of several, took so long.
  void measured(clock::duration took, clock::time_point now) noexcept {
    if (took > took_ && !is_old(now)) return;
    took_ = took;
    measured_at_ = now;
    const auto nanoseconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    bytes_ = std::clamp<std::uint64_t>(nanoseconds * most_each_nanosecond, least_, most_);
  }

 private:
  static constexpr std::chrono::seconds lasts{10};
  /// The most bytes that one thread of either side moves by UCX's messages between two hosts.
  static constexpr std::uint64_t most_each_nanosecond = 3;

  const std::size_t least_;
  const std::size_t most_;
  std::size_t bytes_;
  clock::duration took_ = clock::duration::max();
  clock::time_point measured_at_ = {};
};

}  // namespace ucx::detail
