#include "memory/memory_pool_core.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

namespace ucx::detail {
namespace {

constexpr std::size_t smallest_block = 256;

/// Returns the size of the block for `size` bytes, at most an eighth more; 0 if there is none.
std::size_t block_size(std::size_t size) noexcept {
  if (size <= smallest_block) return smallest_block;
  if (size > SIZE_MAX / 2) return 0;
  const std::size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

void* aligned(void* begin, std::size_t alignment) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  return reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
}

}  // namespace

memory_pool_core::~memory_pool_core() {
  release_idle();
  for (const auto& [address, each] : in_use_) source_->free(each.mapped(), each.key());
}

void* memory_pool_core::allocate(std::size_t size, std::size_t alignment) {
  if (is_inherited()) throw std::bad_alloc();
  const std::size_t extra = alignment > source_->alignment() ? alignment : 0;
  if (size > SIZE_MAX - extra) throw std::bad_alloc();
  const std::size_t wanted = block_size(size + extra);
  const std::lock_guard guard(mutex_);
  if (wanted == 0 || wanted > bound_ - used_bytes_) throw std::bad_alloc();
  block taken = take_idle(wanted);
  if (taken.empty()) taken = take_new(wanted);
  void* const address = extra > 0 ? aligned(taken.mapped(), alignment) : taken.mapped();
  try {
    // Found by its address once there is an entry for that.
    in_use_[address] = std::move(taken);
  } catch (...) {
    idle_.insert(std::move(taken));
    throw;
  }
  used_bytes_ += wanted;
  return address;
}

memory_pool_core::block memory_pool_core::take_idle(std::size_t size) noexcept {
  const auto found = idle_.find(size);
  return found != idle_.end() ? idle_.extract(found) : block();
}

/// Gives up idle blocks that others would use again, rather than fail.
memory_pool_core::block memory_pool_core::take_new(std::size_t size) {
  if (size > bound_ - held_bytes_) release_idle();
  // This may fail for want of the host's memory, so it comes before a block is there to be lost.
  shelf entry{{size, nullptr}};
  void*& begin = entry.begin()->second;
  begin = source_->allocate(size);
  if (begin == nullptr && held_bytes_ > used_bytes_) {
    release_idle();
    begin = source_->allocate(size);
  }
  if (begin == nullptr) throw std::bad_alloc();
  held_bytes_ += size;
  return entry.extract(entry.begin());
}

void memory_pool_core::give_back(void* address) noexcept {
  if (is_inherited()) return;
  const std::lock_guard guard(mutex_);
  const auto found = in_use_.find(address);
  if (found == in_use_.end()) return;
  used_bytes_ -= found->second.key();
  idle_.insert(std::move(found->second));
  in_use_.erase(found);
}

memory_pool_usage memory_pool_core::usage() const noexcept {
  if (is_inherited()) return {};
  const std::lock_guard guard(mutex_);
  memory_pool_usage told;
  told.in_use = used_bytes_;
  told.held = held_bytes_;
  told.max_size = bound_;
  return told;
}

void memory_pool_core::release_unused() noexcept {
  if (is_inherited()) return;
  const std::lock_guard guard(mutex_);
  release_idle();
}

void memory_pool_core::release_idle() noexcept {
  for (const auto& [size, begin] : idle_) {
    source_->free(begin, size);
    held_bytes_ -= size;
  }
  idle_.clear();
}

}  // namespace ucx::detail
