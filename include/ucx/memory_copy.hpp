#pragma once

#include <atomic>
#include <cstddef>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/io_options.hpp"

namespace ucx {

namespace detail {
/// Set once no CUDA driver was found: then nothing more is asked.
UCXIO_EXPORT extern std::atomic<bool> has_no_cuda;
UCXIO_EXPORT bool asks_driver(const void* address, std::size_t size,
                              std::error_code& misplaced) noexcept;

/// As `is_copied_by_driver`, and says why nobody copies the bytes as one: invalid_argument, where
/// they begin in one place and end in another.
inline bool is_copied_by_driver(const void* address, std::size_t size,
                                std::error_code& misplaced) noexcept {
  return !has_no_cuda.load(std::memory_order_relaxed) && asks_driver(address, size, misplaced);
}
}  // namespace detail

/// Returns whether the processor must leave what lies at `address` to `copy_memory`: memory of a
/// device, or managed; or a place that nobody can tell of, which is refused there; so are `size`
/// bytes that begin in one place and end in another. Cost: next to nothing where there is no
/// driver.
inline bool is_copied_by_driver(const void* address, std::size_t size = 1) noexcept {
  std::error_code misplaced;
  return detail::is_copied_by_driver(address, size, misplaced) || misplaced;
}

/// Copies `size` bytes between memory of whatever places, which do not overlap.
/// Completes: when the bytes are there.    Threads: safe.
/// Where one of them is a device's, `options` tell how long it may take (zero: 30 seconds) and the
/// stream of the program's that it comes behind.
/// Lifetime: `into` and `from`, the call; but a device's may still change after timed_out.
/// Errors: io_error (the CUDA driver's; memory that was freed), no_memory, busy (no thread to be
/// had), timed_out, invalid_argument (the stream is of another context; memory
/// that begins in one place and ends in another), not_supported (nobody can
/// tell where a device's memory is: the device has failed, or this is a child that was forked).
/// Cost: memcpy's where both are the host's. Else one copy by the driver, one by the processor, and
/// a thread that is woken; the first call of a thread's makes a stream in the device's primary
/// context, and each call in a context of the program's own makes and ends one.
UCXIO_EXPORT void copy_memory(void* into, const void* from, std::size_t size,
                              const io_options& options = {});
UCXIO_EXPORT void copy_memory(void* into, const void* from, std::size_t size, std::error_code& ec,
                              const io_options& options = {});

}  // namespace ucx
