// Bytes that tell where they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace ucx::test {

/// Returns the byte that belongs at `position` of the content `seed`: neighbours differ, and so do
/// equal places of different pages and contents.
constexpr std::byte pattern_byte(std::uint64_t position, std::uint64_t seed = 0) noexcept {
  const std::uint64_t mixed = (position + 1) * 0x9E3779B97F4A7C15U + seed * 0xC2B2AE3D27D4EB4FU;
  return static_cast<std::byte>(mixed >> 56U);
}

// What goes through many bytes is in pattern.cpp, which is optimised where the tests are not.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed = 0,
                  std::uint64_t position = 0) noexcept;

/// Returns whether `bytes` are those of content `seed` from `position` on.
bool holds_pattern(std::span<const std::byte> bytes, std::uint64_t seed = 0,
                   std::uint64_t position = 0) noexcept;

inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed = 0) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, seed);
  return bytes;
}

/// The same as a text.
inline std::string pattern_text(std::size_t size, std::uint64_t seed = 0) {
  std::string text(size, '\0');
  fill_pattern(std::as_writable_bytes(std::span(text)), seed);
  return text;
}

/// Returns whether every byte is `value`: of memory that nothing may have touched.
inline bool all_bytes_are(std::span<const std::byte> bytes, std::byte value) noexcept {
  // Against itself, one byte on: a sanitizer looks at the whole at once, not at every byte.
  return bytes.empty() || (bytes.front() == value &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace ucx::test
