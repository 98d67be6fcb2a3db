// Moments in the order of cause and effect between processes: docs/reference/calls.md, "Clock".
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

#include "ucx/version.hpp"

namespace ucx {

/// A moment by a `hybrid_clock`: the milliseconds since 1970, and a count within them. Stamps
/// compare as their moments do. An empty one comes before all others, and means that none is known.
struct clock_stamp {
  std::uint64_t bits = 0;  ///< 48 bits of milliseconds, and 16 of the count.

  std::chrono::milliseconds since_epoch() const noexcept {
    return std::chrono::milliseconds(static_cast<std::int64_t>(bits >> 16U));
  }
  unsigned count() const noexcept { return static_cast<unsigned>(bits & 0xffffU); }
  explicit operator bool() const noexcept { return bits != 0; }

  friend auto operator<=>(const clock_stamp&, const clock_stamp&) = default;
};

/// A hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014). Events that a message
/// causes have later stamps than the message. That holds where the wall clocks of both processes
/// are less than `max_ahead` apart. Stamps stay near the wall clock, and never go back. A wall
/// clock that is set back leaves them ahead, until it has caught up.
///
///     const auto clock = std::make_shared<ucx::hybrid_clock>();
///     ucx::call_channel peer(connection, {.clock = clock});  // its calls carry stamps
///
/// A process has one for all its channels and call servers.
/// Threads: any, at the same time.
class UCXIO_EXPORT hybrid_clock {
 public:
  /// How far the stamp of a peer may put this clock ahead of this side's wall clock.
  static constexpr std::chrono::milliseconds max_ahead{500};
  /// Tells the wall time. It throws nothing. It is called, and destroyed, under locks of the
  /// library: it must not call the library.
  using wall_clock = std::function<std::chrono::system_clock::time_point()>;

  /// Makes a clock that follows the system's wall clock.
  hybrid_clock();
  /// Makes one that follows `now`, which any thread may call. An empty one is the system's.
  explicit hybrid_clock(wall_clock now);
  hybrid_clock(const hybrid_clock&) = delete;
  hybrid_clock& operator=(const hybrid_clock&) = delete;
  ~hybrid_clock();

  /// Returns the moment of an event on this side: later than all that this clock has returned.
  /// Cost: reads the wall clock; no lock.
  clock_stamp now() noexcept;
  /// Returns the moment at which a stamp of a peer came: later than `came`, and than all that this
  /// clock has returned. Nothing where that would be more than `max_ahead` ahead of the wall clock:
  /// it is counted, and the clock stays as it was. An empty stamp is as `now()`.
  std::optional<clock_stamp> merge(clock_stamp came) noexcept;
  /// Returns how many stamps `merge` has not taken.
  std::uint64_t ahead() const noexcept { return ahead_.load(std::memory_order_relaxed); }

 private:
  clock_stamp wall() const noexcept;
  clock_stamp step(std::uint64_t least, clock_stamp wall) noexcept;

  const wall_clock now_;
  std::atomic<std::uint64_t> last_ = 0;
  std::atomic<std::uint64_t> ahead_ = 0;
};

}  // namespace ucx
