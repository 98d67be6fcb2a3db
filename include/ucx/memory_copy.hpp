#pragma once

#include <atomic>
#include <cstddef>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"

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

}  // namespace ucx
