#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ucx/export.hpp"

namespace ucx {

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
