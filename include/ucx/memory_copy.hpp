#pragma once

#include <atomic>
#include <cstddef>
#include <system_error>

#include "ucx/export.hpp"

namespace ucx {

namespace detail {
/// Set once no CUDA driver was found: then nothing more is asked.
UCXIO_EXPORT extern std::atomic<bool> has_no_cuda;
UCXIO_EXPORT bool asks_driver(const void* address) noexcept;
}  // namespace detail

/// Returns whether the CUDA driver copies what lies at `address`: memory of a device, or managed.
/// Cost: next to nothing where there is no driver.
inline bool is_copied_by_driver(const void* address) noexcept {
  return !detail::has_no_cuda.load(std::memory_order_relaxed) && detail::asks_driver(address);
}

/// Copies `size` bytes between memory of whatever places, which do not overlap.
/// Completes: when the bytes are there.    Threads: safe.
/// Where one of them is a device's, `cuda_stream` is as in `io_options`.
/// Errors: io_error (the CUDA driver's; memory that was freed), no_memory, invalid_argument (the
/// stream is of another context).    Cost: memcpy's where both are the host's.
UCXIO_EXPORT void copy_memory(void* into, const void* from, std::size_t size,
                              void* cuda_stream = nullptr);
UCXIO_EXPORT void copy_memory(void* into, const void* from, std::size_t size, std::error_code& ec,
                              void* cuda_stream = nullptr);

}  // namespace ucx
