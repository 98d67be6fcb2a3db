// Where a stream's source ends, as far as the stream knows.
#pragma once

#include <chrono>
#include <cstdint>

#include "byte_source.hpp"

namespace ucx::detail {

/// Decides when the source is asked how long it is by now. The first read that comes to the end
/// costs nothing; the next one asks, because its program knows of that end and wants to read on all
/// the same. Who follows asks at once, and waits.
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
  /// Asks, and returns where the end is. Throws why nobody tells.
  std::uint64_t measure(std::uint64_t known) {
    const std::uint64_t now = source_.measure(known, follow_);
    seen_ = now <= known;
    doubtful_ = false;
    return now;
  }
  /// The same without waiting for it to become longer.
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
  bool seen_ = false;
  bool doubtful_ = false;
};

}  // namespace ucx::detail
