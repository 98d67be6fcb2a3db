// Memory of any kind: copies, known contents, pools, and a resource for each kind.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/old_option.hpp"
#include "ucx/request.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
/// Set after no CUDA driver was found: then nothing more is asked.
UCXIO_EXPORT extern std::atomic<bool> has_no_cuda;
UCXIO_EXPORT bool asks_driver(const void* address, std::size_t size,
                              std::error_code& misplaced) noexcept;

/// Like `is_copied_by_driver`. Sets `misplaced` to invalid_argument where the bytes begin in one
/// place and end in another, because nothing can copy them as one.
inline bool is_copied_by_driver(const void* address, std::size_t size,
                                std::error_code& misplaced) noexcept {
  return !has_no_cuda.load(std::memory_order_relaxed) && asks_driver(address, size, misplaced);
}
}  // namespace detail

/// Returns whether the processor must leave the bytes at `address` to `copy_memory`. It must for
/// memory of a device and for managed memory. It must also where the place can not be told, or
/// where `size` bytes begin in one place and end in another: `copy_memory` refuses those.
/// Cost: next to nothing where there is no driver.
inline bool is_copied_by_driver(const void* address, std::size_t size = 1) noexcept {
  std::error_code misplaced;
  return detail::is_copied_by_driver(address, size, misplaced) || misplaced;
}

/// Copies `size` bytes between memory of any places, which do not overlap. For a device's memory,
/// `options` set the time that the copy may take (zero: 30 seconds). They also set the program's
/// stream that the copy comes after.
/// Completes: when the bytes are there.
/// Lifetime: `into` and `from`, the call; but a device's memory may still change after timed_out.
/// Errors: io_error (the CUDA driver's; memory that was freed), no_memory, busy (no thread can be
/// started), timed_out, invalid_argument (the stream is of another context; memory that begins in
/// one place and ends in another), not_supported (the place of a device's memory can not be told:
/// the device has failed, or this is a child that was forked).
/// Cost: memcpy's where both are the host's. Else one copy by the driver, one by the processor, and
/// a thread that is woken. A thread's first call makes a stream in the device's primary context.
/// Each call in a context of the program makes and ends a stream.
/// Threads: safe.
UCXIO_EXPORT void copy_memory(void* into, const void* from, std::size_t size,
                              const io_options& options = {}, std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
[[deprecated("the error code comes last")]] inline void copy_memory(
    void* into, const void* from, std::size_t size, std::error_code& ec,
    const io_options& options = {}) {
  copy_memory(into, from, size, options, ec);
}
#endif

// A known content for tests and measurements. Byte `i` of content `seed` is the highest byte of
// (i + 1) * 0x9E3779B97F4A7C15 + seed * 0xC2B2AE3D27D4EB4F, modulo 2^64, in every version.
// Neighbours differ, and so do equal places of different pages and contents.

/// Fills `bytes`, in memory of any place, with content `seed` from its byte `offset` on. `options`
/// are those of `copy_memory`, of a device's memory.
/// Completes: when the bytes are there.
/// Errors: those of `copy_memory`.
/// Cost: a pass by the processor; of a device's memory also a copy for each MiB.
/// Threads: safe.
UCXIO_EXPORT void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed = 0,
                               std::uint64_t offset = 0, const io_options& options = {},
                               std::error_code& ec = throws);

/// Returns the index of the first of `bytes` that is not as `fill_pattern` makes it. Returns
/// nothing where all of them are, and with an error. Errors, Cost, Threads: those of
/// `fill_pattern`.
UCXIO_EXPORT std::optional<std::size_t> find_pattern_mismatch(std::span<const std::byte> bytes,
                                                              std::uint64_t seed = 0,
                                                              std::uint64_t offset = 0,
                                                              const io_options& options = {},
                                                              std::error_code& ec = throws);

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
/// Errors: `allocate` throws std::bad_alloc beyond the bound, without memory, and when inherited.
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

/// The choice of a receive that finds no resource for the kind of the sender's memory.
enum class missing_resource {
  fallback,  ///< Uses the resource for the host's memory.
  strict,    ///< Fails with `errc::not_supported`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(missing_resource value) noexcept;

/// The resource for each kind of memory, and the function that copies its bytes. It is for code
/// that allocates and copies in memory of any kind, also of kinds that this library does not know.
/// Threads: while one thread adds, no other may use it.
class UCXIO_EXPORT memory_resources {
 public:
  /// Copies `size` bytes from or to memory of the kind. Returns why it failed.
  using copy_function =
      std::function<std::error_code(void* into, const void* from, std::size_t size)>;

  /// Makes an object with `std::pmr::new_delete_resource()` for the host, and no other resource.
  memory_resources() noexcept;

  /// Sets the resource for `kind`, and the function that copies it. Without `copy` the library
  /// copies by itself. Replaces an earlier resource of `kind`.
  /// Lifetime: `resource`, until it is replaced or this object is gone.
  void add(memory_kind kind, std::pmr::memory_resource& resource, copy_function copy = {});

  /// Returns the resource for `kind`, or null.
  std::pmr::memory_resource* find(memory_kind kind) const noexcept;

  /// Copies `size` bytes from memory of the kind `source` to memory of the kind `target`. The
  /// function of `target` does it, else that of `source`. Without either, the CUDA driver does it
  /// if one is a device's or managed, else the processor.
  /// Completes: when the bytes are there.
  /// Errors: not_supported (a kind that has no function and that the library can not copy),
  /// invalid_argument (memory that is not of the kind that it is said to be), io_error, the error
  /// of the function.
  void copy(void* into, memory_kind target, const void* from, memory_kind source, std::size_t size,
            std::error_code& ec = throws) const;

 private:
  struct resource_of_kind {
    memory_kind kind = memory_kind::host;
    std::pmr::memory_resource* resource = nullptr;
    copy_function copy = {};
  };
  const resource_of_kind* found(memory_kind kind) const noexcept;

  // Host, CUDA's three, ROCm, and all others as one.
  std::array<resource_of_kind, 6> known_;
};

}  // namespace ucx
