#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucx {

/// One piece of a batch of reads: the bytes from `offset` of the region on fill `into`.
struct read_piece {
  std::uint64_t offset = 0;
  std::span<std::byte> into = {};
};

/// One piece of a batch of writes: `from` goes to `offset` of the region.
struct write_piece {
  std::uint64_t offset = 0;
  std::span<const std::byte> from = {};
};

}  // namespace ucx
