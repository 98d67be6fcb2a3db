#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <system_error>

#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/old_option.hpp"

namespace ucx {

namespace detail {
class memory_pool_core;
}

struct memory_pool_options {
  /// For one version: `max_size`.
  detail::old_option<std::size_t> bound = {};
  /// The bytes that the pool may hold, rounding and alignment included.
  std::size_t max_size = bound.value_or(std::size_t{256} << 20U);
};

/// The use of a pool's memory, in bytes.
struct memory_pool_usage {
  std::size_t in_use = 0;  ///< Allocated by its users, rounded up.
  std::size_t held = 0;    ///< The bytes in use, and those that wait to be used again.
  union {
    std::size_t max_size = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("max_size")]] std::size_t bound;
#endif
  };
};

/// Memory of one kind that is used again. Taking memory from a driver, or registering it, often
/// costs more than the work with it. The pool's records are in the host's memory. The pool never
/// touches the blocks themselves.
/// Lifetime: until everything that was allocated from it has been given back.
/// Errors: `allocate` throws std::bad_alloc beyond the bound, and where there is no memory.
/// Threads: sharing one object is safe, but for the destructor.
class UCXIO_EXPORT memory_pool final : public std::pmr::memory_resource {
 public:
  /// Makes a pool of memory at `place`: a CUDA device's, managed by CUDA, pinned for it, or the
  /// host's. It allocates nothing before the first request.
  /// Errors: not_supported (no CUDA driver, no such device, another kind), no_memory, io_error.
  explicit memory_pool(const memory_place& place, const memory_pool_options& options = {},
                       std::error_code& ec = throws);

  /// Makes a pool of the host's memory that is registered with UCX, for as long as it is held.
  /// Errors: closed (a context that was moved from), feature_disabled (one without `feature::rma`).
  explicit memory_pool(const context& registering, const memory_pool_options& options = {},
                       std::error_code& ec = throws);

  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;
  ~memory_pool() override;

  memory_place place() const noexcept;
  memory_pool_usage usage() const noexcept;
  /// Gives unused memory back to its source.
  void release_unused() noexcept;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override;
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  std::unique_ptr<detail::memory_pool_core> core_;
};

}  // namespace ucx
