// The buffers of one stream, allocated once and used again.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "engine/byte_budget.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Aligned for the widest copies a processor has.
inline constexpr std::align_val_t block_alignment{64};

/// Memory of one buffer; empty, or of one of the pool's two sizes. A read may keep it, too.
class block {
 public:
  block() noexcept = default;
  /// Allocates. Throws bad_alloc.
  explicit block(std::size_t size)
      : memory_(static_cast<std::byte*>(::operator new(size, block_alignment)), deleter()),
        size_(size) {}

  std::byte* get() const noexcept { return memory_.get(); }
  std::size_t size() const noexcept { return memory_ ? size_ : 0; }
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  std::shared_ptr<const void> keeper() const noexcept { return memory_; }

 private:
  struct deleter {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete(memory, block_alignment);
    }
  };
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

/// Gives out blocks. One whose transfer is not wanted any more is parked until the transfer is
/// done, because it may still be written to or read from. Giving a transfer up could cost the
/// connection. The bytes of a parked block are in flight until then. The block of a transfer that
/// failed is not used again: the source may keep it, and write there still.
class block_pool {
 public:
  /// Blocks are of `block_size`, or of `short_size` where that is enough.
  block_pool(std::size_t block_size, std::size_t short_size, byte_budget& in_flight) noexcept
      : block_size_(block_size), short_size_(short_size), in_flight_(in_flight) {}

  std::size_t block_size() const noexcept { return block_size_; }
  /// Returns how many bytes it has allocated, given out or not.
  std::size_t allocated() const noexcept { return allocated_; }

  /// Returns a block for `bytes`, at most `block_size()`. Throws bad_alloc.
  block take(std::size_t bytes);
  void give_back(block&& unused) noexcept;
  /// Forgets a block whose transfer failed.
  void discard(block&& failed) noexcept;
  /// Of what is free, keeps as much as makes `bytes` together with what is in use.
  void keep(std::size_t bytes) noexcept;

  /// REQUIRES: `bytes` are in the budget; they are given back when the transfer is done.
  void park(block&& in_use, request&& transfer, std::size_t bytes) noexcept;
  /// Waits until one parked transfer is done, and takes back all that are; returns whether there
  /// was one. Throws would_deadlock where nothing can be waited for.
  bool wait_for_parked();
  /// Takes back what is parked and done.
  void collect_parked() noexcept;
  /// Frees every block it has; waits for the transfers of the parked ones, or gives them up.
  void release(bool give_up) noexcept;

 private:
  struct parked_block {
    block memory;
    request transfer;
    std::size_t bytes = 0;
  };
  block allocate(std::size_t size);
  void take_back(block&& memory, const request& done) noexcept;
  void trim(std::size_t bytes) noexcept;

  const std::size_t block_size_;
  const std::size_t short_size_;
  byte_budget& in_flight_;
  std::size_t blocks_ = 0;
  std::size_t allocated_ = 0;
  std::vector<block> free_;
  std::vector<parked_block> parked_;
};

}  // namespace ucx::detail
