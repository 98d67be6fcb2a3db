#include "rpc/call_landing.hpp"

#include <memory>
#include <memory_resource>
#include <utility>

#include "cuda/device_pointer.hpp"
#include "ucx/buffer.hpp"

namespace ucx::detail {
namespace {

std::pmr::memory_resource* resource_of(const call_memory& where, memory_kind kind) noexcept {
  const bool is_reached = kind == memory_kind::host || is_copied_by_driver(kind);
  return is_reached ? where.resources->find(kind) : nullptr;
}

/// Returns the resource for what comes from memory of `sent`; null: the heap.
std::pmr::memory_resource* resource_for(const call_memory& where, memory_kind sent) noexcept {
  if (!where.resources) return nullptr;
  std::pmr::memory_resource* found = where.as_sent ? resource_of(where, sent) : nullptr;
  if (found == nullptr) found = resource_of(where, where.kind);
  return found != nullptr ? found : where.resources->find(memory_kind::host);
}

landed_part made_part(const call_parts::told& told, const call_memory& where) {
  std::pmr::memory_resource* const from = resource_for(where, told.kind);
  const auto size = static_cast<std::size_t>(told.size);
  auto owner = from != nullptr && size > 0 ? std::make_shared<buffer>(*from, size)
                                           : std::make_shared<buffer>(size);
  const std::span<std::byte> bytes = owner->bytes();
  return {bytes, std::move(owner)};
}

}  // namespace

void landed_message::make_room(std::uint64_t length, const call_parts& told,
                               const call_memory& where) {
  body.resize(static_cast<std::size_t>(length - told.total));
  parts.reserve(told.count);
  for (const call_parts::told& each : told.all()) parts.push_back(made_part(each, where));
}

std::vector<std::span<std::byte>> landed_message::runs() {
  std::vector<std::span<std::byte>> made;
  made.reserve(1 + parts.size());
  for (const landed_part& each : parts) made.push_back(each.bytes);
  made.emplace_back(body);
  return made;
}

}  // namespace ucx::detail
