// Limits of unconfirmed writes: docs/reference/wire-format.md, `opened` and `write`.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucx::detail {

/// Pieces of one file that its server keeps at most, however short they are: each costs it more
/// than its bytes.
inline constexpr std::uint64_t most_pieces_of_a_window = 4096;

/// Returns what a piece of so many bytes takes. Both sides count by it.
constexpr std::uint64_t write_room(std::uint64_t bytes, std::uint64_t window) noexcept {
  return std::max(bytes, window / most_pieces_of_a_window);
}

/// The most bytes of unconfirmed writes that one handle has to a device's memory. A device may be
/// slower than the way to it.
inline constexpr std::uint64_t device_write_window = std::uint64_t{8} << 20U;

}  // namespace ucx::detail
