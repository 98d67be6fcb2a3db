// Memory that is granted for reading only.
#pragma once

#include <cstddef>
#include <span>

namespace ucx::detail {

/// For what takes memory of either kind. REQUIRES: it is granted for reading only, so that nothing
/// here or at a peer writes it.
inline std::span<std::byte> without_const(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace ucx::detail
