// How many bytes of payload go in one message.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ucx::detail {

/// The payload that one segment holds beside our header and UCX's, in whole pages. UCX splits
/// longer messages by what this side can send. A peer that can receive less in one segment is ended
/// by it (1.13.1).
struct piece_sizes {
  /// Of answers to reads, and of messages. These are slower again in larger pieces than half a MiB,
  /// because sender and receiver then overlap less; writes are not.
  std::size_t answer = page;
  std::size_t write = page;
  /// Of what is copied for UCX first, where nothing but the peer ends a message.
  std::size_t copied = largest_copy;
  /// Whether `copied` is what an element of the receiver's queue holds: see `fit_elements`.
  bool are_elements = false;

  /// Of an unknown segment (0): as of the shortest that UCX takes by itself, of 8 KiB.
  static constexpr piece_sizes of_segment(std::size_t segment) noexcept {
    const std::size_t pages = segment / page;
    if (segment > 0 && pages < 2) {  // headers take up to half of it
      const std::size_t most = std::max(segment / 2 / cache_line, std::size_t{1}) * cache_line;
      return {std::min(most, page), std::min(most, page)};
    }
    if (pages < 3) return {};
    const std::size_t most = (pages - 1) * page;
    return {std::min(most, largest_answer), std::min(most, largest_write)};
  }
  /// For shared memory: a message of `longest` bytes, with our header and UCX's beside it, is one
  /// element of the receiver's queue. The receiver takes such a message straight out of the queue.
  /// Of several elements UCX makes one first, which is two copies more, and memory that no cache
  /// has.
  constexpr void fit_elements(std::size_t longest) noexcept {
    if (longest < page) return;
    copied = std::min(longest / cache_line * cache_line, largest_copy);
    are_elements = copied < largest_copy;
  }

  static constexpr std::size_t largest_copy = std::size_t{64} << 10U;

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t cache_line = 64;
  static constexpr std::size_t largest_answer = std::size_t{512} << 10U;
  static constexpr std::size_t largest_write = std::size_t{4} << 20U;
};

}  // namespace ucx::detail
