#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The accesses that a region grants to peers: reads, writes, or both. A peer that breaks the rules
/// is held to them only where `docs/how-to/security.md`, "Checks", names a check of the owner or of
/// the system. RDMA hardware has none.
enum class access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Returns whether `granted` includes everything in `wanted`.
constexpr bool includes(access granted, access wanted) noexcept {
  return (static_cast<unsigned>(granted) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

template <>
UCXIO_EXPORT std::string_view detail::enum_name(access value) noexcept;

}  // namespace ucx
