#include "ucx/hybrid_clock.hpp"

#include <algorithm>
#include <utility>

namespace ucx {

hybrid_clock::hybrid_clock() : hybrid_clock(wall_clock()) {}
hybrid_clock::hybrid_clock(wall_clock now)
    : now_(now ? std::move(now) : [] { return std::chrono::system_clock::now(); }) {}
hybrid_clock::~hybrid_clock() = default;

/// A wall clock outside what a stamp can tell is as one at that bound. The upper one leaves room
/// for a stamp that is as far ahead as may be: no sum wraps.
clock_stamp hybrid_clock::wall() const noexcept {
  using std::chrono::milliseconds;
  constexpr std::int64_t most = (std::int64_t{1} << 48U) - 2 - max_ahead.count();
  const auto told = std::chrono::duration_cast<milliseconds>(now_().time_since_epoch());
  const std::int64_t bounded = std::clamp<std::int64_t>(told.count(), 0, most);
  return {static_cast<std::uint64_t>(bounded) << 16U};
}

/// A count that is full goes on in the next millisecond.
clock_stamp hybrid_clock::step(std::uint64_t least, clock_stamp wall) noexcept {
  std::uint64_t before = last_.load(std::memory_order_relaxed);
  std::uint64_t made = 0;
  do {
    made = std::max(std::max(before, least) + 1, wall.bits);
  } while (!last_.compare_exchange_weak(before, made, std::memory_order_relaxed));
  return {made};
}

clock_stamp hybrid_clock::now() noexcept { return step(0, wall()); }

/// The bound is that of the moment that would follow, so that a peer's word never puts this clock
/// beyond it.
std::optional<clock_stamp> hybrid_clock::merge(clock_stamp came) noexcept {
  const clock_stamp own = wall();
  constexpr auto ahead = static_cast<std::uint64_t>(max_ahead.count()) << 16U;
  if (came.bits >= own.bits + ahead + 0xffffU) {
    ahead_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return step(came.bits, own);
}

}  // namespace ucx
