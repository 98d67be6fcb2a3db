#include "ucx/memory_place.hpp"

#include <array>
#include <cstdint>

#include "cuda/cuda_driver.hpp"
#include "os/processor_reach.hpp"

namespace ucx {
namespace {

/// The place of memory that no driver tells of. Memory that the processor can read counts as the
/// host's; the rest is never touched.
memory_place seen_by_the_processor(const void* address) noexcept {
  return detail::is_in_reach(address) ? memory_place() : memory_place{memory_kind::other, -1};
}

}  // namespace

memory_place place_of(const void* address) noexcept {
  using namespace detail;
  const cuda_driver* const driver = cuda_driver::find();
  if (address == nullptr) return {};
  if (driver == nullptr) {
    return cuda_driver::is_unusable() ? seen_by_the_processor(address) : memory_place();
  }
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
  // It can not tell: it has failed, or its parent's process has it.
  if (result != cuda::success) return seen_by_the_processor(address);
  if (managed != 0) return {memory_kind::cuda_managed, device};
  if (type == cuda::type_device) return {memory_kind::cuda, device};
  if (type == cuda::type_host) return {memory_kind::cuda_pinned, device};
  // Not CUDA's; not any more, maybe.
  return seen_by_the_processor(address);
}

}  // namespace ucx
