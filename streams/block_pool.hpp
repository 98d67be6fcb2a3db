// The buffers of one stream, allocated once and used again.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "ring_queue.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Aligned for the widest copies a processor has.
inline constexpr std::align_val_t block_alignment{64};

struct block_deleter {
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, block_alignment); }
};

/// Memory of one buffer; empty, or of its pool's `block_size()`.
using block = std::unique_ptr<std::byte[], block_deleter>;

/// Gives out blocks. One whose transfer nobody wants any more is parked until the transfer is done,
/// because it may still be written to or read from; to give a transfer up could
/// cost the connection.
class block_pool {
 public:
  /// Allocates up to `most_blocks`, and more only where waiting is impossible.
  block_pool(std::size_t block_size, std::size_t most_blocks) noexcept
      : block_size_(block_size), most_blocks_(most_blocks) {}

  std::size_t block_size() const noexcept { return block_size_; }

  /// Waits for a parked one only if there are `most_blocks`, and none is free. Throws bad_alloc.
  block take();
  void give_back(block&& unused) noexcept;
  void park(block&& in_use, request&& transfer) noexcept;
  /// Frees every block it has; waits for the transfers of the parked ones.
  void release() noexcept;

 private:
  struct parked_block {
    block memory;
    request transfer;
  };
  void collect_parked() noexcept;
  block allocate();

  std::size_t block_size_;
  std::size_t most_blocks_;
  std::size_t allocated_ = 0;
  std::vector<block> free_;
  std::vector<parked_block> parked_;
};

}  // namespace ucx::detail
