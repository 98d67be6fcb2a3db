// Bytes that tell where they came from.
#pragma once

#include <bit>
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

/// Returns the eight bytes from `position` on, as they lie in memory: a sanitizer that looks at
/// every access then looks at one for eight bytes.
constexpr std::uint64_t pattern_word(std::uint64_t position, std::uint64_t seed) noexcept {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned place = std::endian::native == std::endian::little ? i : 7 - i;
    word |= static_cast<std::uint64_t>(pattern_byte(position + i, seed)) << (8 * place);
  }
  return word;
}

inline void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed = 0,
                         std::uint64_t position = 0) noexcept {
  std::byte* const at = bytes.data();
  const std::size_t size = bytes.size();
  std::size_t i = 0;
  for (; size - i >= 8; i += 8) {
    const std::uint64_t word = pattern_word(position + i, seed);
    std::memcpy(at + i, &word, sizeof word);
  }
  for (; i < size; ++i) at[i] = pattern_byte(position + i, seed);
}

/// Returns whether `bytes` are those of content `seed` from `position` on.
inline bool holds_pattern(std::span<const std::byte> bytes, std::uint64_t seed = 0,
                          std::uint64_t position = 0) noexcept {
  const std::byte* const at = bytes.data();
  const std::size_t size = bytes.size();
  std::size_t i = 0;
  for (; size - i >= 8; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, sizeof word);
    if (word != pattern_word(position + i, seed)) return false;
  }
  for (; i < size; ++i) {
    if (at[i] != pattern_byte(position + i, seed)) return false;
  }
  return true;
}

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
