#include "support/bytes/pattern.hpp"

#include <bit>

namespace ucx::test {
namespace {

/// Returns the eight bytes from `position` on, as they lie in memory: a sanitizer that looks at
/// every access then looks at one for eight bytes.
std::uint64_t pattern_word(std::uint64_t position, std::uint64_t seed) noexcept {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned place = std::endian::native == std::endian::little ? i : 7 - i;
    word |= static_cast<std::uint64_t>(pattern_byte(position + i, seed)) << (8 * place);
  }
  return word;
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t position) noexcept {
  std::byte* const at = bytes.data();
  const std::size_t size = bytes.size();
  std::size_t i = 0;
  for (; size - i >= 8; i += 8) {
    const std::uint64_t word = pattern_word(position + i, seed);
    std::memcpy(at + i, &word, sizeof word);
  }
  for (; i < size; ++i) at[i] = pattern_byte(position + i, seed);
}

bool holds_pattern(std::span<const std::byte> bytes, std::uint64_t seed,
                   std::uint64_t position) noexcept {
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

}  // namespace ucx::test
