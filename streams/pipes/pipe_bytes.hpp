// Little-endian numbers in messages, as docs/reference/wire-format.md has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucx::detail {

/// Writes the lowest `bytes.size()` bytes of `value`.
inline void put_pipe_number(std::span<std::byte> bytes, std::uint64_t value) noexcept {
  for (std::byte& each : bytes) {
    each = static_cast<std::byte>(value & 0xffU);
    value >>= 8U;
  }
}

/// Reads what `put_pipe_number` wrote.
inline std::uint64_t pipe_number_in(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8U) | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

}  // namespace ucx::detail
