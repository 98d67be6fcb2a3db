// Where a stream's source ends, as far as the stream knows.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/byte_source.hpp"

namespace ucx::detail {

/// Decides when the source is asked how long it is by now. The first read that comes to the end
/// costs nothing. The next one asks, because the program knows of that end and wants to read on all
/// the same. A stream that follows asks at once, and waits.
class source_end {
 public:
  source_end(byte_source& source, std::chrono::nanoseconds follow) noexcept
      : source_(source), follow_(follow) {}
  source_end(const source_end&) = delete;
  source_end& operator=(const source_end&) = delete;

  /// A read has come to the end, at `known`. Returns whether the source is to be asked.
  bool reached() noexcept {
    if (!source_.can_be_measured()) return false;
    const bool asks = seen_ || follow_ > follow_.zero();
    seen_ = true;
    return asks;
  }
  /// A read begins: it waits once for as long as is followed, however often it has to ask.
  void begin() noexcept {
    begun_.reset();
    unanswered_.reset();
  }
  /// Asks, and returns where the end is. Throws where that can not be told.
  std::uint64_t measure(std::uint64_t known) {
    const auto asked = source_.now();
    if (!begun_) begun_ = asked;
    const std::chrono::nanoseconds passed = asked - *begun_;
    unanswered_ = asked;
    const std::uint64_t now =
        source_.measure(known, passed < follow_ ? follow_ - passed : follow_.zero());
    unanswered_.reset();
    begun_.reset();
    seen_ = now <= known;
    doubtful_ = false;
    return now;
  }
  /// Returns whether the question that failed last had been waiting for its answer for a while, and
  /// there is time left to ask again.
  bool had_waited() noexcept {
    constexpr std::chrono::nanoseconds a_while = std::chrono::seconds(1);
    const auto asked = std::exchange(unanswered_, std::nullopt);
    const bool waited = asked && source_.now() - *asked >= a_while;
    return waited && begun_ && source_.now() - *begun_ < follow_;
  }
  /// As measure(), without waiting for it to become longer.
  std::uint64_t look() {
    doubtful_ = false;
    return source_.measure(0, std::chrono::nanoseconds::zero());
  }

  /// The end that is known is an old one: the next read that comes to it asks.
  void forget() noexcept { seen_ = true; }
  /// There may be less than is known: it is to be looked at before anything is read.
  void doubt() noexcept { doubtful_ = source_.can_be_measured(); }
  bool doubtful() const noexcept { return doubtful_; }

 private:
  byte_source& source_;
  const std::chrono::nanoseconds follow_;
  std::optional<std::chrono::steady_clock::time_point> begun_;       // the waiting
  std::optional<std::chrono::steady_clock::time_point> unanswered_;  // the question that failed
  bool seen_ = false;
  bool doubtful_ = false;
};

}  // namespace ucx::detail
