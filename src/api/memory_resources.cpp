#include "ucx/memory_resources.hpp"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "cuda/device_pointer.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"

namespace ucx {
namespace {

bool is_host(memory_kind kind) noexcept {
  return kind == memory_kind::host || kind == memory_kind::cuda_pinned;
}

/// Returns whether all of it is memory of that kind; of one allocation, where it is a device's.
std::error_code check(const void* address, memory_kind kind, std::size_t size) noexcept {
  if (!detail::is_copied_by_driver(kind)) return {};
  const std::span bytes(static_cast<const std::byte*>(address), size);
  const memory_place place = place_of(address);
  if (place.kind == memory_kind::other) return errc::not_supported;
  const bool right =
      place.kind == kind && place_of(&bytes.back()) == place && detail::is_of_one_allocation(bytes);
  return right ? std::error_code() : make_error_code(errc::invalid_argument);
}

std::error_code copy_by_library(void* into, memory_kind target, const void* from,
                                memory_kind source, std::size_t size) {
  if (is_host(target) && is_host(source)) {
    std::memcpy(into, from, size);
    return {};
  }
  if (target == memory_kind::rocm || target == memory_kind::other || source == memory_kind::rocm ||
      source == memory_kind::other) {
    return errc::not_supported;
  }
  std::error_code ec = check(into, target, size);
  if (!ec) ec = check(from, source, size);
  if (!ec) copy_memory(into, from, size, {}, ec);
  return ec;
}

}  // namespace

memory_resources::memory_resources() noexcept {
  constexpr std::array kinds{memory_kind::host,        memory_kind::cuda, memory_kind::cuda_managed,
                             memory_kind::cuda_pinned, memory_kind::rocm, memory_kind::other};
  for (std::size_t i = 0; i < kinds.size(); ++i) known_[i].kind = kinds[i];
  known_.front().resource = std::pmr::new_delete_resource();
}

const memory_resources::resource_of_kind* memory_resources::found(memory_kind kind) const noexcept {
  for (const resource_of_kind& each : known_) {
    if (each.kind == kind) return &each;
  }
  return &known_.back();
}

void memory_resources::add(memory_kind kind, std::pmr::memory_resource& resource,
                           copy_function copy) {
  auto& entry = const_cast<resource_of_kind&>(*found(kind));
  entry.resource = &resource;
  entry.copy = std::move(copy);
}

std::pmr::memory_resource* memory_resources::find(memory_kind kind) const noexcept {
  return found(kind)->resource;
}

void memory_resources::copy(void* into, memory_kind target, const void* from, memory_kind source,
                            std::size_t size, std::error_code& ec) const {
  const copy_function& by_target = found(target)->copy;
  const copy_function& by_source = found(source)->copy;
  std::error_code outcome;
  if (size > 0) {
    outcome = by_target   ? by_target(into, from, size)
              : by_source ? by_source(into, from, size)
                          : copy_by_library(into, target, from, source, size);
  }
  detail::end_with(outcome, ec, [=] {
    return "copying " + std::to_string(size) + " bytes of " + std::string(to_string(source)) +
           " memory into " + std::string(to_string(target)) + " memory";
  });
}

}  // namespace ucx
