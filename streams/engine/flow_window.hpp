// How many bytes one direction of a stream should have in flight.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ucx::detail {

/// Follows bandwidth times delay, from what is seen of transfers: when each was started, and when
/// it was found to be over. The bandwidth is the most that was delivered between start and end of
/// one transfer, divided by a time. That is the time from the delivery before its start on, or the
/// time in which as much was started, whichever is longer. Otherwise ends that are found late, in
/// bunches, would look like a fast link (draft-cheng-iccrg-delivery-rate-estimation). The most of
/// the last four rounds counts. The delay is the shortest transfer of the last ten seconds. Both
/// are the filters of BBR (draft-cardwell-iccrg-bbr-congestion-control, "BBR.BtlBw" and
/// "BBR.RTprop"). The window is twice their product, and two transfers more. So it doubles in each
/// round trip while it is the window that limits the rate (dynamic right-sizing: Fisk and Feng,
/// 2001). A transfer that is alone takes its own time on the wire besides the delay: its bytes are
/// taken off the product. The window is never less than `least_blocks`, which is what a link needs
/// whose delay is nothing, nor more than the bound. Where it comes to more than half the bound,
/// transfers are short, a 64th of the bound. Then the window is full but for one of them.
///
/// States of the delay:
///
///     from    | to    | when
///     unknown | known | a transfer was seen to take time
///     known   | old   | the transfer that showed it ended more than ten seconds ago
///     old     | known | a transfer that was alone has ended, or one that took no longer
class flow_window {
 public:
  using clock = std::chrono::steady_clock;

  /// How things stood when a transfer was started.
  struct mark {
    clock::time_point at = {};
    std::uint64_t delivered = 0;
    clock::time_point delivered_at = {};  // the last of them
    clock::time_point started_at = {};    // the transfer whose end was found last
    bool alone = false;
  };

  flow_window(std::size_t bound, std::size_t block, std::size_t least_blocks = 4) noexcept;

  /// A transfer starts; `alone`: nothing else is in flight in its direction.
  mark started(clock::time_point now, bool alone) noexcept {
    if (alone) delivered_at_ = started_at_ = now;
    return {now, delivered_, delivered_at_, started_at_, alone};
  }
  /// So many bytes more have arrived, of whatever transfer.
  void arrived(std::size_t bytes) noexcept { delivered_ += bytes; }
  /// The transfer of `bytes` that was started at `begin` is over; they have been counted.
  void ended(const mark& begin, std::size_t bytes, clock::time_point now) noexcept;

  /// Returns how many bytes to have in flight; one transfer may always be. None else while the
  /// delay is measured again, which takes a transfer that is alone.
  std::size_t target() const noexcept { return delay_is_ == delay::old ? 0 : target_; }
  /// Returns the same without regard to that.
  std::size_t size() const noexcept { return target_; }
  /// Returns how long a transfer should be at most.
  std::size_t piece() const noexcept { return piece_; }
  /// Returns how many transfers that is, at least four, where they are as long as they may be.
  std::size_t most_pieces() const noexcept { return most_pieces_; }

  static std::size_t short_piece(std::size_t bound, std::size_t block) noexcept;

  /// Returns whether a transfer was seen to take time.
  bool measured() const noexcept { return delay_is_ != delay::unknown; }
  /// Returns the delay without what the transfer that showed it took on the wire.
  std::chrono::nanoseconds round_trip() const noexcept;
  double bytes_per_second() const noexcept;

 private:
  enum class delay { unknown, known, old };
  void measure_rate(const mark& begin, clock::time_point now) noexcept;
  void measure_delay(const mark& begin, std::size_t bytes, clock::time_point now) noexcept;
  double product() const noexcept;
  void aim() noexcept;

  static constexpr std::chrono::seconds delay_lasts{10};
  static constexpr std::size_t rounds = 4;

  const std::size_t bound_;
  const std::size_t block_;
  const std::size_t least_;
  std::size_t target_;
  std::size_t piece_;
  std::size_t most_pieces_;

  std::uint64_t delivered_ = 0;
  clock::time_point delivered_at_ = {};
  clock::time_point started_at_ = {};
  std::uint64_t round_ends_ = 0;  // with the first transfer that is started behind this byte
  std::size_t round_ = 0;
  std::array<double, rounds> rates_ = {};  // bytes a second: the best of each round

  delay delay_is_ = delay::unknown;
  std::chrono::nanoseconds delay_ = {};
  std::size_t delay_bytes_ = 0;  // of the transfer that took it
  clock::time_point delay_at_ = {};
};

}  // namespace ucx::detail
