// Whether a pointer of the user's is one that the processor must not follow.
#pragma once

#include <cstddef>
#include <span>

#include "detail/cuda_driver.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

constexpr bool is_copied_by_driver(memory_kind kind) noexcept {
  return kind == memory_kind::cuda || kind == memory_kind::cuda_managed;
}

/// Returns whether all of `bytes`, which are a device's, are of one allocation, as far as the
/// driver tells: one of before CUDA 10.2 does not.
bool is_of_one_allocation(std::span<const std::byte> bytes) noexcept;

/// Asks the driver, but for what lies on the calling thread's stack: small reads go there.
bool driver_copies(const void* address) noexcept;

/// Returns whether the CUDA driver copies what lies at `address`. Nearly free where there is none.
inline bool is_on_device(const void* address) noexcept {
  return cuda_driver::may_be_there() && driver_copies(address);
}

}  // namespace ucx::detail
