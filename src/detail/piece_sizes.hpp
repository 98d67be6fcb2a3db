// How many bytes of payload go in one message.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ucx::detail {

/// What one segment holds beside our header and UCX's, in whole pages. UCX splits what is longer by
/// what this side can send; a peer that can receive less in one segment is ended by it (1.13.1).
struct piece_sizes {
  /// Of answers to reads, and of messages. These are slower again in larger pieces than half a MiB,
  /// because sender and receiver then overlap less; writes are not.
  std::size_t answer = page;
  std::size_t write = page;

  static constexpr piece_sizes of_segment(std::size_t segment) noexcept {
    const std::size_t pages = segment / page;
    if (pages < 3) return {};
    const std::size_t most = (pages - 1) * page;
    return {std::min(most, largest_answer), std::min(most, largest_write)};
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t largest_answer = std::size_t{512} << 10U;
  static constexpr std::size_t largest_write = std::size_t{4} << 20U;
};

}  // namespace ucx::detail
