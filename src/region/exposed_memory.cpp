#include "region/exposed_memory.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "cuda/device_pointer.hpp"
#include "memory/memory_source.hpp"
#include "region/device_memory.hpp"
#include "region/device_region.hpp"
#include "region/region_core.hpp"
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
std::shared_ptr<std::byte> allocate_pinned(const memory_place& place, std::size_t size,
                                           std::string& what, std::error_code& ec) {
  const std::shared_ptr<memory_source> source = memory_source::of(place, what, ec);
  if (ec) return nullptr;
  auto* const made = static_cast<std::byte*>(source->allocate(size));
  if (made == nullptr) {
    what = "allocating " + std::to_string(size) + " bytes of pinned memory";
    ec = errc::no_memory;
    return nullptr;
  }
  std::memset(made, 0, size);
  return {made, [source, size](std::byte* bytes) { source->free(bytes, size); }};
}

}  // namespace

std::shared_ptr<exposed_region> expose_memory(std::shared_ptr<context_core> context,
                                              std::span<std::byte> bytes, access granted,
                                              const std::optional<memory_place>& expected,
                                              std::string& what, std::error_code& ec) {
  ec.clear();
  if (bytes.empty()) return region_core::make(std::move(context), {&no_bytes}, granted, what, ec);
  const memory_place place = place_of(bytes.data());
  const memory_kind last = place_of(&bytes.back()).kind;
  if (place.kind == memory_kind::other || last == memory_kind::other) {
    what = "exposing " + std::to_string(bytes.size()) +
           " bytes: the CUDA driver can not tell where they are";
    ec = errc::not_supported;
  } else if (expected && !is_as_expected(place, *expected)) {
    what = complaint(place, *expected);
    ec = errc::invalid_argument;
  } else if (!is_copied_by_driver(place.kind) && is_copied_by_driver(last)) {
    what = "exposing " + std::to_string(bytes.size()) +
           " bytes that begin in the host's memory and end in a device's";
    ec = errc::invalid_argument;
  }
  if (ec) return nullptr;
  if (!is_copied_by_driver(place.kind)) {
    return region_core::make(std::move(context), {bytes.data(), bytes.size(), place}, granted, what,
                             ec);
  }
  std::shared_ptr<device_memory> memory = device_memory::borrow(place, bytes, what, ec);
  if (ec) return nullptr;
  return device_region::make(std::move(context), std::move(memory), granted, what, ec);
}

std::shared_ptr<exposed_region> allocate_memory(std::shared_ptr<context_core> context,
                                                std::size_t size, access granted,
                                                const memory_place& place, std::string& what,
                                                std::error_code& ec) {
  ec.clear();
  // Nobody copies what is not there.
  if (size == 0 && (place.kind == memory_kind::cuda_pinned || is_copied_by_driver(place.kind))) {
    return expose_memory(std::move(context), {}, granted, std::nullopt, what, ec);
  }
  switch (place.kind) {
    case memory_kind::host: {
      std::byte* const chosen = size > 0 ? nullptr : &no_bytes;
      return region_core::make(std::move(context), {chosen, size}, granted, what, ec);
    }
    case memory_kind::cuda_pinned: {
      const std::shared_ptr<std::byte> made = allocate_pinned(place, size, what, ec);
      if (ec) return nullptr;
      return region_core::make(std::move(context), {made.get(), size, place_of(made.get()), made},
                               granted, what, ec);
    }
    case memory_kind::cuda:
    case memory_kind::cuda_managed: {
      std::shared_ptr<device_memory> memory = device_memory::allocate(place, size, what, ec);
      if (ec) return nullptr;
      return device_region::make(std::move(context), std::move(memory), granted, what, ec);
    }
    case memory_kind::rocm:
    case memory_kind::other:
      break;
  }
  what = "allocating memory of kind " + std::string(to_string(place.kind));
  ec = errc::not_supported;
  return nullptr;
}

}  // namespace ucx::detail
