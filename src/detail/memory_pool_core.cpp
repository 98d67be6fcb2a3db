#include "detail/memory_pool_core.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

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
  for (const auto& [address, each] : in_use_) source_->free(each.begin, each.size);
}

void* memory_pool_core::allocate(std::size_t size, std::size_t alignment) {
  const std::size_t extra = alignment > source_->alignment() ? alignment : 0;
  if (size > SIZE_MAX - extra) throw std::bad_alloc();
  const std::size_t wanted = block_size(size + extra);
  const std::lock_guard guard(mutex_);
  if (wanted == 0 || wanted > bound_ - used_bytes_) throw std::bad_alloc();
  // What may fail for want of the host's memory, before a block is there to be lost; giving back
  // needs none then.
  in_use_.reserve(in_use_.size() + 1);
  std::vector<void*>& shelf = idle_[wanted];
  shelf.reserve(in_use_.size() + shelf.size() + 1);
  void* begin = take_idle(wanted);
  if (begin == nullptr) begin = take_new(wanted);
  if (begin == nullptr) throw std::bad_alloc();
  void* const address = extra > 0 ? aligned(begin, alignment) : begin;
  try {
    in_use_.emplace(address, block{begin, wanted});
  } catch (...) {
    idle_[wanted].push_back(begin);
    throw;
  }
  used_bytes_ += wanted;
  return address;
}

void* memory_pool_core::take_idle(std::size_t size) noexcept {
  const auto found = idle_.find(size);
  if (found == idle_.end() || found->second.empty()) return nullptr;
  void* const taken = found->second.back();
  found->second.pop_back();
  return taken;
}

/// Gives up what others of its sizes would use again, rather than fail.
void* memory_pool_core::take_new(std::size_t size) noexcept {
  if (size > bound_ - held_bytes_) release_idle();
  void* made = source_->allocate(size);
  if (made == nullptr && held_bytes_ > used_bytes_) {
    release_idle();
    made = source_->allocate(size);
  }
  if (made != nullptr) held_bytes_ += size;
  return made;
}

void memory_pool_core::give_back(void* address) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = in_use_.extract(address);
  if (found.empty()) return;
  const block& returned = found.mapped();
  used_bytes_ -= returned.size;
  std::vector<void*>& shelf = idle_.find(returned.size)->second;
  if (shelf.size() < shelf.capacity()) {
    shelf.push_back(returned.begin);
  } else {
    source_->free(returned.begin, returned.size);
    held_bytes_ -= returned.size;
  }
}

memory_pool_usage memory_pool_core::usage() const noexcept {
  const std::lock_guard guard(mutex_);
  return {used_bytes_, held_bytes_, bound_};
}

void memory_pool_core::release_unused() noexcept {
  const std::lock_guard guard(mutex_);
  release_idle();
}

void memory_pool_core::release_idle() noexcept {
  for (auto& [size, shelf] : idle_) {
    for (void* const each : shelf) source_->free(each, size);
    held_bytes_ -= size * shelf.size();
    shelf.clear();  // its room stays, for those that are given back
  }
}

}  // namespace ucx::detail
