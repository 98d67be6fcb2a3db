// How fast the bytes of a region come and go, measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "ucx/remote_region.hpp"

namespace ucx::tool {

/// How long single reads took, in microseconds.
struct latency {
  std::size_t bytes = 0;  ///< Of each read.
  std::uint64_t reads = 0;
  double min = 0;
  double median = 0;
  double p99 = 0;  ///< 99 of 100 took no longer.
};

/// The throughput of calls of one size, one behind the other.
struct throughput {
  std::size_t call = 0;
  std::size_t connections = 1;  ///< That were asked for.
  std::size_t used = 1;         ///< That the stream had.
  std::uint64_t calls = 0;
  double seconds = 0;

  std::uint64_t bytes() const noexcept { return calls * call; }
  double gigabytes_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(bytes()) / seconds / 1e9 : 0;
  }
};

/// Reads eight bytes here and there, again and again, for about `duration`; a million times at
/// most. REQUIRES: the region is not empty.    Errors: as remote_region::read_at.
latency measure_latency(const remote_region& region, std::chrono::nanoseconds duration);

/// Reads the `size` bytes of a stream, from its beginning to its end, round and round, for about
/// `duration`. Nothing that was read in one round serves the next.
/// REQUIRES: `call` is no more than `size`.    Errors: std::ios_base::failure.
throughput measure_reading(std::istream& in, std::uint64_t size, std::size_t call,
                           std::chrono::nanoseconds duration);

/// Writes `content` to the beginning of a stream, round and round, for about `duration`, and
/// flushes, which counts.
/// REQUIRES: `content` has `call` bytes.    Errors: std::ios_base::failure.
throughput measure_writing(std::ostream& out, std::span<const char> content, std::size_t call,
                           std::chrono::nanoseconds duration);

}  // namespace ucx::tool
