// Where a pool of memory gets its blocks from.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

class context_core;

/// Threads: sharing one object is safe.
class memory_source {
 public:
  memory_source() noexcept = default;
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;
  virtual ~memory_source() = default;

  virtual memory_place place() const noexcept = 0;
  /// How the blocks are aligned at least.
  virtual std::size_t alignment() const noexcept = 0;
  /// Returns a block, or nothing.
  virtual void* allocate(std::size_t size) noexcept = 0;
  virtual void free(void* block, std::size_t size) noexcept = 0;

  /// Makes the source of memory at `place`. Errors: not_supported, no_memory, io_error.
  static result<std::unique_ptr<memory_source>> of(const memory_place& place);
  /// Makes a source of the host's memory that registers its blocks with UCX.
  static std::unique_ptr<memory_source> registered(std::shared_ptr<context_core> context);
};

}  // namespace ucx::detail
