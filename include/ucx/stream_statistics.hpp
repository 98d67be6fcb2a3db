#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ucx {

/// What a stream over remote memory has under way, and how far it would go.
struct stream_statistics {
  /// Bytes that were asked for and not taken yet, or written and not known to be visible; what a
  /// seek left behind counts until it has arrived. Never more than `bound`.
  std::size_t in_flight = 0;
  /// Bytes of the stream's buffers, those that wait to be used again included.
  std::size_t memory = 0;
  /// `stream_options::window`.
  std::size_t bound = 0;
  /// Bytes that reading, and writing, would have in flight at present.
  std::size_t read_window = 0;
  std::size_t write_window = 0;
  /// What the read window, or where nothing was read the write window, follows: the delay of the
  /// connection, and the bytes a second that it carried. Zeros before a transfer was waited for,
  /// and where transfers are over as soon as they are asked for.
  std::chrono::nanoseconds round_trip = std::chrono::nanoseconds::zero();
  std::uint64_t bytes_per_second = 0;
  /// The connections that the stream reads over: `stream_options::lanes`, or fewer.
  std::size_t lanes = 1;
};

}  // namespace ucx
