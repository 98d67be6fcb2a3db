#include "cuda/device_pointer.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// More of a stack than any thread is deep in it.
constexpr std::uintptr_t deepest_stack = std::uintptr_t{64} << 20U;

/// Returns the address behind this thread's stack, which grows down from there; 0: unknown.
std::uintptr_t end_of_own_stack() noexcept {
  ::pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  std::size_t size = 0;
  const int failed = ::pthread_attr_getstack(&attributes, &begin, &size);
  ::pthread_attr_destroy(&attributes);
  return failed != 0 ? 0 : reinterpret_cast<std::uintptr_t>(begin) + size;
}

/// Looks at the part of the stack in use alone. Where a stack's size is unlimited, most of the
/// address space may become stack some day, and a device's memory may lie there.
bool is_on_own_stack(const void* address) noexcept {
  thread_local const std::uintptr_t end = end_of_own_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto asked = reinterpret_cast<std::uintptr_t>(address);
  return end - here < deepest_stack && asked >= here && asked < end;
}

/// No page is of two kinds.
bool are_in_one_page(const void* first, const void* last) noexcept {
  constexpr std::uintptr_t page = 4096;  // or more
  return reinterpret_cast<std::uintptr_t>(first) / page ==
         reinterpret_cast<std::uintptr_t>(last) / page;
}

}  // namespace

bool is_of_one_allocation(std::span<const std::byte> bytes) noexcept {
  const cuda_driver* const driver = cuda_driver::find();
  cuda::address begin = 0;
  std::size_t size = 0;
  std::array<int, 2> attributes{cuda::attribute_range_start, cuda::attribute_range_size};
  std::array<void*, 2> values{&begin, &size};
  const auto first = static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(bytes.data()));
  if (driver == nullptr ||
      driver->pointer_attributes(2, attributes.data(), values.data(), first) != cuda::success) {
    return true;
  }
  return size == 0 || (bytes.size() <= size && first - begin <= size - bytes.size());
}

std::uint64_t allocation_at(const void* address) noexcept {
  const cuda_driver* const driver = cuda_driver::find();
  unsigned long long number = 0;  // NOLINT(google-runtime-int): the driver's type
  int attribute = cuda::attribute_buffer_id;
  void* value = &number;
  const auto asked = static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(address));
  if (driver == nullptr ||
      driver->pointer_attributes(1, &attribute, &value, asked) != cuda::success) {
    return 0;
  }
  return number;
}

bool driver_copies(std::span<const std::byte> bytes, std::error_code& ec) noexcept {
  if (bytes.empty()) return false;
  const void* const begin = bytes.data();
  const void* const last = &bytes.back();
  if (is_on_own_stack(begin) && is_on_own_stack(last)) return false;
  const memory_place first = place_of(begin);
  if (first.kind == memory_kind::other) return true;
  const bool on_device = is_copied_by_driver(first.kind);
  if (!on_device && are_in_one_page(begin, last)) return false;
  const memory_place end = place_of(last);
  if (end.kind == memory_kind::other) {  // beyond the memory's end; or the driver has failed
    ec = on_device && is_of_one_allocation(bytes) ? errc::not_supported : errc::invalid_argument;
    return on_device;
  }
  const bool fits = on_device ? end == first : !is_copied_by_driver(end.kind);
  if (!fits) ec = errc::invalid_argument;
  return on_device;
}

}  // namespace ucx::detail
