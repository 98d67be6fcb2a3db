// Whether a pointer of the user's is one that the processor must not follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "detail/cuda_driver.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

constexpr bool is_copied_by_driver(memory_kind kind) noexcept {
  return kind == memory_kind::cuda || kind == memory_kind::cuda_managed;
}

/// Returns whether all of `bytes`, which are a device's, are of one allocation, as far as the
/// driver tells.
bool is_of_one_allocation(std::span<const std::byte> bytes) noexcept;

/// Returns the number of the allocation that `address` is in, which no other of the process gets,
/// whatever comes to lie there later. 0: the driver does not tell.
std::uint64_t allocation_at(const void* address) noexcept;

/// Asks the driver, but for what lies on the calling thread's stack: small reads go there.
bool driver_copies(const void* address) noexcept;

/// Returns whether the CUDA driver copies what lies at `address`; or nobody, where it can not tell,
/// and who tries is told. Nearly free where there is no driver.
inline bool is_on_device(const void* address) noexcept {
  return cuda_driver::may_be_there() && driver_copies(address);
}

}  // namespace ucx::detail
