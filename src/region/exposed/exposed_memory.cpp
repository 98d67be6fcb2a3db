#include "region/exposed/exposed_memory.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "cuda/device_pointer.hpp"
#include "memory/memory_source.hpp"
#include "region/exposed/device_memory.hpp"
#include "region/exposed/device_region.hpp"
#include "region/exposed/memory_region_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

// Where a region of no bytes begins: it has no address to borrow.
std::byte no_bytes{};

/// Says how memory is not where it is expected.
std::string complaint(const memory_place& found, const memory_place& expected) {
  return "exposing memory of kind " + std::string(to_string(found.kind)) + " and device " +
         std::to_string(found.device) + ", where " + std::string(to_string(expected.kind)) +
         " and " + std::to_string(expected.device) + " are expected";
}

bool is_as_expected(const memory_place& found, const memory_place& expected) noexcept {
  return found.kind == expected.kind && (expected.device == -1 || found.device == expected.device);
}

/// Allocates zeroed memory that the driver has pinned, and that goes with the pointer.
result<std::shared_ptr<std::byte>> allocate_pinned(const memory_place& place, std::size_t size) {
  auto found = memory_source::of(place);
  if (!found) return found.why();
  const std::shared_ptr<memory_source> source = *std::move(found);
  auto* const made = static_cast<std::byte*>(source->allocate(size));
  if (made == nullptr) {
    return failure{errc::no_memory,
                   "allocating " + std::to_string(size) + " bytes of pinned memory"};
  }
  std::memset(made, 0, size);
  return std::shared_ptr<std::byte>(
      made, [source, size](std::byte* bytes) { source->free(bytes, size); });
}

}  // namespace

result<std::shared_ptr<exposed_region>> expose_memory(std::shared_ptr<context_core> context,
                                                      std::span<std::byte> bytes, access granted,
                                                      const std::optional<memory_place>& expected) {
  if (bytes.empty()) return memory_region_core::make(std::move(context), {&no_bytes}, granted);
  const memory_place place = place_of(bytes.data());
  const memory_kind last = place_of(&bytes.back()).kind;
  if (place.kind == memory_kind::other || last == memory_kind::other) {
    return failure{errc::not_supported, "exposing " + std::to_string(bytes.size()) +
                                            " bytes: the CUDA driver can not tell where they are"};
  }
  if (expected && !is_as_expected(place, *expected)) {
    return failure{errc::invalid_argument, complaint(place, *expected)};
  }
  if (!is_copied_by_driver(place.kind)) {
    if (is_copied_by_driver(last)) {
      return failure{errc::invalid_argument,
                     "exposing " + std::to_string(bytes.size()) +
                         " bytes that begin in the host's memory and end in a device's"};
    }
    return memory_region_core::make(std::move(context), {bytes.data(), bytes.size(), place},
                                    granted);
  }
  auto memory = device_memory::borrow(place, bytes);
  if (!memory) return memory.why();
  return device_region::make(std::move(context), *std::move(memory), granted);
}

result<std::shared_ptr<exposed_region>> allocate_memory(std::shared_ptr<context_core> context,
                                                        std::size_t size, access granted,
                                                        const memory_place& place) {
  // A region without bytes needs neither the driver nor pinned memory.
  if (size == 0 && (place.kind == memory_kind::cuda_pinned || is_copied_by_driver(place.kind))) {
    return expose_memory(std::move(context), {}, granted, std::nullopt);
  }
  switch (place.kind) {
    case memory_kind::host: {
      std::byte* const chosen = size > 0 ? nullptr : &no_bytes;
      return memory_region_core::make(std::move(context), {chosen, size}, granted);
    }
    case memory_kind::cuda_pinned: {
      const auto made = allocate_pinned(place, size);
      if (!made) return made.why();
      std::byte* const first = made->get();
      return memory_region_core::make(std::move(context), {first, size, place_of(first), *made},
                                      granted);
    }
    case memory_kind::cuda:
    case memory_kind::cuda_managed: {
      auto memory = device_memory::allocate(place, size);
      if (!memory) return memory.why();
      return device_region::make(std::move(context), *std::move(memory), granted);
    }
    case memory_kind::rocm:
    case memory_kind::other:
      break;
  }
  return failure{errc::not_supported,
                 "allocating memory of kind " + std::string(to_string(place.kind))};
}

result<std::shared_ptr<exposed_region>> adopt_memory(std::shared_ptr<context_core> context,
                                                     ucp_mem* registered, access granted) {
  return memory_region_core::adopt(std::move(context), registered, granted);
}

}  // namespace ucx::detail
