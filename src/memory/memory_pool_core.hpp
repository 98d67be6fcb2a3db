// The blocks of a pool of memory, and who has them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "memory/memory_source.hpp"
#include "ucx/context.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

/// Blocks come in sizes an eighth apart, so that one that was given back fits what comes next.
/// In a child of fork() an inherited one gives nothing, and takes nothing back: its lock is not
/// waited for. Threads: sharing one object is safe.
class memory_pool_core {
 public:
  memory_pool_core(std::unique_ptr<memory_source> source, std::size_t bound) noexcept
      : source_(std::move(source)), bound_(bound) {}
  memory_pool_core(const memory_pool_core&) = delete;
  memory_pool_core& operator=(const memory_pool_core&) = delete;
  ~memory_pool_core();

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }

  /// Errors: std::bad_alloc.
  void* allocate(std::size_t size, std::size_t alignment);
  /// Does nothing with what is not the pool's.
  void give_back(void* address) noexcept;

  memory_place place() const noexcept { return source_->place(); }
  memory_pool_usage usage() const noexcept;
  void release_unused() noexcept;

 private:
  /// Where blocks begin, by size. A block's entry goes with it to its user and back. So giving back
  /// needs no memory, and nothing is remembered of blocks that the source has back.
  using shelf = std::multimap<std::size_t, void*>;
  using block = shelf::node_type;

  block take_idle(std::size_t size) noexcept;
  block take_new(std::size_t size);
  void release_idle() noexcept;

  const process_stamp made_;
  const std::unique_ptr<memory_source> source_;
  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, block> in_use_;  // by the address that its user has
  shelf idle_;
  std::size_t used_bytes_ = 0;
  std::size_t held_bytes_ = 0;
};

}  // namespace ucx::detail
