#include "detail/device_pointer.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucx::detail {
namespace {

/// Where the stack of one thread is.
struct stack_range {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
};

stack_range stack_of_this_thread() noexcept {
  ::pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  std::size_t size = 0;
  const int failed = ::pthread_attr_getstack(&attributes, &begin, &size);
  ::pthread_attr_destroy(&attributes);
  if (failed != 0) return {};
  return {reinterpret_cast<std::uintptr_t>(begin), size};
}

bool is_on_own_stack(const void* address) noexcept {
  thread_local const stack_range own = stack_of_this_thread();
  return reinterpret_cast<std::uintptr_t>(address) - own.begin < own.size;
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

bool driver_copies(const void* address) noexcept {
  return !is_on_own_stack(address) && is_copied_by_driver(place_of(address).kind);
}

}  // namespace ucx::detail
