#pragma once

#include <chrono>
#include <cstddef>

namespace ucx {

/// How a stream over remote memory buffers.
struct stream_options {
  /// Bytes of one buffer, and of one transfer of read-ahead or write-behind.
  std::size_t buffer_size = std::size_t{1} << 20U;
  /// Transfers in flight at most, in either direction. Read-ahead starts with one, grows on
  /// sequential use up to this depth, and collapses on a seek. 1 turns read-ahead off.
  std::size_t depth = 4;
  /// How long each transfer, and each flush, may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

}  // namespace ucx
