// Copies by the CUDA driver that a thread waits for, and no longer than it wants to.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "base/clock.hpp"
#include "cuda/device_copier.hpp"

namespace ucx::detail {

/// How one is done.
struct copy_terms {
  clock::time_point until;
  std::shared_ptr<const stream_mark> after = nullptr;  ///< Work of the program's that comes before.
  std::shared_ptr<const void> keeps = nullptr;         ///< Until the driver has let go.
};

// The driver gets a buffer of the library in place of the host's memory. So that is the caller's
// again whatever these return, though a device hangs. Memory of devices may still change after
// timed_out. Errors of each: timed_out, io_error, no_memory, closed, busy.
std::error_code copy_to_device(device_copier& by, void* device, std::span<const std::byte> from,
                               const copy_terms& terms) noexcept;
std::error_code copy_from_device(device_copier& by, std::span<std::byte> into, const void* device,
                                 const copy_terms& terms) noexcept;
/// Copies between memory that the driver knows.
std::error_code copy_within_devices(device_copier& by, void* into, const void* from,
                                    std::size_t size, const copy_terms& terms) noexcept;

}  // namespace ucx::detail
