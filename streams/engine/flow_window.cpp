#include "engine/flow_window.hpp"

#include <algorithm>

namespace ucx::detail {
namespace {

constexpr std::size_t least_pieces = 4;
constexpr std::size_t short_pieces = 64;

}  // namespace

std::size_t flow_window::short_piece(std::size_t bound, std::size_t block) noexcept {
  return std::min(block, std::max<std::size_t>(1, bound / short_pieces));
}

flow_window::flow_window(std::size_t bound, std::size_t block, std::size_t least_blocks) noexcept
    : bound_(bound), block_(block), least_(std::min(bound, least_blocks * block)) {
  aim();
}

void flow_window::ended(const mark& begin, std::size_t bytes, clock::time_point now) noexcept {
  if (now <= begin.at) return;
  measure_rate(begin, now);
  measure_delay(begin, bytes, now);
  aim();
}

void flow_window::measure_rate(const mark& begin, clock::time_point now) noexcept {
  if (begin.delivered >= round_ends_) {
    round_ends_ = delivered_;
    round_ = (round_ + 1) % rounds;
    rates_[round_] = 0;
  }
  const std::chrono::duration<double> took =
      std::max(now - begin.delivered_at, begin.at - begin.started_at);
  rates_[round_] =
      std::max(rates_[round_], static_cast<double>(delivered_ - begin.delivered) / took.count());
  delivered_at_ = now;
  started_at_ = begin.at;
}

void flow_window::measure_delay(const mark& begin, std::size_t bytes,
                                clock::time_point now) noexcept {
  const std::chrono::nanoseconds took = now - begin.at;
  const bool shows_it = delay_is_ == delay::old && begin.alone;
  if (delay_is_ == delay::unknown || took <= delay_ || shows_it) {
    delay_is_ = delay::known;
    delay_ = took;
    delay_bytes_ = bytes;
    delay_at_ = now;
  } else if (now - delay_at_ > delay_lasts) {
    delay_is_ = delay::old;
  }
}

double flow_window::bytes_per_second() const noexcept {
  return *std::max_element(rates_.begin(), rates_.end());
}

std::chrono::nanoseconds flow_window::round_trip() const noexcept {
  const double rate = bytes_per_second();
  return std::chrono::nanoseconds(rate > 0 ? static_cast<std::int64_t>(1e9 * product() / rate) : 0);
}

/// Returns bandwidth times delay, in bytes.
double flow_window::product() const noexcept {
  const double whole = bytes_per_second() * std::chrono::duration<double>(delay_).count();
  return std::max(whole - static_cast<double>(delay_bytes_), 0.0);
}

void flow_window::aim() noexcept {
  const double wanted = 2 * product() + 2 * static_cast<double>(block_);
  target_ = wanted < static_cast<double>(bound_)
                ? std::max(least_, static_cast<std::size_t>(wanted))
                : bound_;
  const bool large = target_ > bound_ / 2 && target_ > least_;
  piece_ = large ? short_piece(bound_, block_) : block_;
  most_pieces_ = std::max(least_pieces, target_ / piece_);
}

}  // namespace ucx::detail
