#include "ucx/memory_place.hpp"

#include <array>
#include <cstdint>

#include "detail/cuda_driver.hpp"
#include "detail/processor_reach.hpp"

namespace ucx {

memory_place place_of(const void* address) noexcept {
  using namespace detail;
  const cuda_driver* const driver = cuda_driver::find();
  if (driver == nullptr || address == nullptr) return {};
  unsigned type = 0;
  unsigned managed = 0;
  int device = -1;
  std::array<int, 3> attributes{cuda::attribute_memory_type, cuda::attribute_is_managed,
                                cuda::attribute_device};
  std::array<void*, 3> values{&type, &managed, &device};
  const cuda::result result = driver->pointer_attributes(
      static_cast<unsigned>(attributes.size()), attributes.data(), values.data(),
      static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(address)));
  if (result == cuda::not_initialized && !cuda_driver::may_be_inherited()) return {};
  if (result != cuda::success) {
    // It can not tell: it has failed, or its parent's process has it. What the processor can read
    // is treated as the host's; the rest nobody touches.
    return is_in_reach(address) ? memory_place() : memory_place{memory_kind::other, -1};
  }
  if (managed != 0) return {memory_kind::cuda_managed, device};
  if (type == cuda::type_device) return {memory_kind::cuda, device};
  if (type == cuda::type_host) return {memory_kind::cuda_pinned, device};
  return {};
}

}  // namespace ucx
