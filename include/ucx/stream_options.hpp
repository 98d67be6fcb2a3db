// The options and the statistics of a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ucx/old_option.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The buffering of a stream over remote memory.
struct stream_options {
  /// Bytes of one buffer. A transfer of read-ahead or write-behind has no more.
  std::size_t buffer_size = std::size_t{1} << 20U;
  /// For one version: `queue_depth`.
  detail::old_option<std::size_t> depth = {};
  /// The most transfers in flight, in either direction. `window` limits their bytes. 1 turns
  /// read-ahead off.
  std::size_t queue_depth = depth.value_or(1024);
  /// How long each transfer, and each flush, may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// The most bytes in flight, both directions together. The buffers of a stream hold so many, and
  /// two buffers more. The number in use follows bandwidth times delay (`docs/how-to/tuning.md`).
  /// From `min_window` to `max_window`; opening a stream with another value is
  /// `invalid_argument`.
  std::size_t window = std::size_t{16} << 20U;
  /// For one version: `follow_timeout`.
  detail::old_option<std::chrono::nanoseconds> follow = {};
  /// How long a read at the end of a file waits for the file to become longer. If no byte came in
  /// that time, it is the end of the file. For streams that were opened by URL, or by client and
  /// name. Memory has a fixed size, and ends at once. Negative counts as zero.
  std::chrono::nanoseconds follow_timeout = follow.value_or(std::chrono::nanoseconds::zero());
  /// For one version: `reconnect_timeout`.
  detail::old_option<std::chrono::nanoseconds> reconnect = {};
  /// How long a stream tries to make a lost connection again, at least once; zero: not at all. For
  /// streams that were opened by URL, or by client and name. A read goes on at its position, if the
  /// content is the same. Writing goes on after `clear()` (`docs/reference/streams.md`, "Lost
  /// connections"). An attempt that has begun may take its whole connect time-out.
  std::chrono::nanoseconds reconnect_timeout = reconnect.value_or(std::chrono::nanoseconds::zero());

  /// Checks reads as `io_options::verify` says. Writes are not checked: read the bytes back. A
  /// mapped region is then read by message, too. A local path ignores it.
  bool verify = false;

  /// The CUDA stream for reads into, and writes from, memory of a CUDA device, as
  /// `io_options::cuda_stream` says. The calling thread copies bytes that are in the stream's
  /// buffer, or fit it. It then waits for the work of the CUDA stream. A local path ignores it.
  /// Lifetime: the stream's.
  void* cuda_stream = nullptr;

  /// For one version: `connections`.
  detail::old_option<std::size_t> lanes = {};
  /// The most connections that the stream reads over. Each further one has a worker and a thread
  /// here, so that receiving and copying use a core each. For streams that were
  /// opened to be read only, by URL, or by client and name. Mapped regions, and files that are
  /// followed, use one. Connections that can not be made are left out. From 1 to `max_connections`;
  /// opening a stream with another number is `invalid_argument`. A local path ignores it.
  std::size_t connections = lanes.value_or(1);

  static constexpr std::size_t min_window = std::size_t{4} << 10U;
  static constexpr std::size_t max_window = std::size_t{1} << 40U;
  static constexpr std::size_t max_connections = 64;
#if UCXIO_OLD_NAMES
  [[deprecated("min_window")]] static constexpr std::size_t least_window = min_window;
  [[deprecated("max_window")]] static constexpr std::size_t most_window = max_window;
  [[deprecated("max_connections")]] static constexpr std::size_t most_lanes = max_connections;
#endif
};

/// The operations in flight of a stream over remote memory, and its windows.
struct stream_statistics {
  /// Bytes that were asked for and not taken yet, or written and not known to be visible. Bytes
  /// that a seek left behind count until they have arrived. Never more than `window`.
  std::size_t in_flight = 0;
  /// Bytes of the stream's buffers, with those that wait to be used again.
  std::size_t memory = 0;
  union {
    /// `stream_options::window`.
    std::size_t window = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("window")]] std::size_t bound;
#endif
  };
  /// Bytes that reading, and writing, would have in flight at present.
  std::size_t read_window = 0;
  std::size_t write_window = 0;
  /// The measured delay and rate of the connection. The read window follows them, or the write
  /// window where nothing was read. Zeros before a transfer was waited for, and where transfers end
  /// as soon as they are asked for.
  std::chrono::nanoseconds round_trip = std::chrono::nanoseconds::zero();
  std::uint64_t bytes_per_second = 0;
  union {
    /// The connections that the stream reads over: `stream_options::connections`, or fewer.
    std::size_t connections = 1;
#if UCXIO_OLD_NAMES
    [[deprecated("connections")]] std::size_t lanes;
#endif
  };
};

}  // namespace ucx
