#include "detail/exposed_memory.hpp"

#include <string>
#include <utility>

#include "detail/device_memory.hpp"
#include "detail/device_pointer.hpp"
#include "detail/device_region.hpp"
#include "detail/region_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

// Where a region of no bytes begins: it has no address to borrow.
std::byte no_bytes{};

}  // namespace

std::shared_ptr<exposed_region> expose_memory(std::shared_ptr<context_core> context,
                                              std::span<std::byte> bytes, access granted,
                                              std::string& what, std::error_code& ec) {
  ec.clear();
  if (bytes.empty()) return region_core::make(std::move(context), &no_bytes, 0, granted, what, ec);
  const memory_place place = place_of(bytes.data());
  if (place.kind == memory_kind::other) {
    what = "exposing " + std::to_string(bytes.size()) +
           " bytes: the CUDA driver can not tell where they are";
    ec = errc::not_supported;
    return nullptr;
  }
  if (!is_copied_by_driver(place.kind)) {
    return region_core::make(std::move(context), bytes.data(), bytes.size(), granted, what, ec);
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
  if (place.kind == memory_kind::host) {
    std::byte* const chosen = size > 0 ? nullptr : &no_bytes;
    return region_core::make(std::move(context), chosen, size, granted, what, ec);
  }
  if (!is_copied_by_driver(place.kind)) {
    what = "allocating memory of kind " + std::string(to_string(place.kind));
    ec = errc::not_supported;
    return nullptr;
  }
  // Nobody copies what is not there.
  if (size == 0) return expose_memory(std::move(context), {}, granted, what, ec);
  std::shared_ptr<device_memory> memory = device_memory::allocate(place, size, what, ec);
  if (ec) return nullptr;
  return device_region::make(std::move(context), std::move(memory), granted, what, ec);
}

}  // namespace ucx::detail
