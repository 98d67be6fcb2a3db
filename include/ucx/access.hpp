#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// The accesses that a region grants to peers: reads, writes, or both.
enum class access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Returns whether `granted` includes everything in `wanted`.
constexpr bool includes(access granted, access wanted) noexcept {
  return (static_cast<unsigned>(granted) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

/// Returns "read", "write" or "read_write".
UCXIO_EXPORT const char* to_string(access granted) noexcept;

}  // namespace ucx
