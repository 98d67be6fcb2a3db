// Whether a pointer of the user's is one that the processor must not follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "cuda/cuda_driver.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

constexpr bool is_copied_by_driver(memory_kind kind) noexcept {
  return kind == memory_kind::cuda || kind == memory_kind::cuda_managed;
}

/// Returns whether all of `bytes`, which are a device's, are of one allocation, as far as the
/// driver tells.
bool is_of_one_allocation(std::span<const std::byte> bytes) noexcept;

/// Returns the number of the allocation that `address` is in. No other one of the process gets that
/// number, whatever comes to lie there later. 0: the driver does not tell.
std::uint64_t allocation_at(const void* address) noexcept;

/// Asks the driver, but for what lies on the calling thread's stack: small reads go there.
bool driver_copies(std::span<const std::byte> bytes, std::error_code& ec) noexcept;

/// Returns whether the CUDA driver has to copy `bytes`. That is also so where it can not tell what
/// they are: the copy then fails. Asks for the first byte and the last. Nearly free where there is
/// no driver.
/// Errors: invalid_argument, where they begin in one place and end in another; else `ec` is left.
inline bool is_on_device(std::span<const std::byte> bytes, std::error_code& ec) noexcept {
  return cuda_driver::may_be_there() && driver_copies(bytes, ec);
}

/// Returns whether all of `bytes` may be touched by the processor.
inline bool is_on_host(std::span<const std::byte> bytes) noexcept {
  std::error_code ec;
  return !is_on_device(bytes, ec) && !ec;
}

}  // namespace ucx::detail
