#pragma once

#include <cstddef>

namespace ucx {

/// How a stream over remote memory buffers.
struct stream_options {
  /// Bytes of one buffer, and of one transfer of read-ahead or write-behind.
  std::size_t buffer_size = std::size_t{1} << 20U;
  /// Transfers in flight at most, in either direction. Read-ahead starts with one, grows on
  /// sequential use up to this depth, and collapses on a seek. 1 turns read-ahead off.
  std::size_t depth = 4;
};

}  // namespace ucx
