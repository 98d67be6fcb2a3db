// The known content that the library fills memory with, and finds again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::test {
namespace {

std::vector<int> bytes_as_numbers(std::span<const std::byte> bytes) {
  std::vector<int> made;
  for (const std::byte each : bytes) made.push_back(std::to_integer<int>(each));
  return made;
}

// Programs of different versions compare it with each other's.
TEST(MemoryPattern, IsAsItIsWrittenDown) {
  std::array<std::byte, 8> bytes = {};
  ucx::fill_pattern(bytes);
  EXPECT_EQ(bytes_as_numbers(bytes), (std::vector{0x9E, 0x3C, 0xDA, 0x78, 0x17, 0xB5, 0x53, 0xF1}));
  ucx::fill_pattern(bytes, 7, 1'000'000'000'000);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_EQ(bytes[at], pattern_byte(1'000'000'000'000 + at, 7)) << at;
  }
}

TEST(MemoryPattern, GoesOnWhereAnotherPieceEnds) {
  std::vector<std::byte> whole(100'000);
  ucx::fill_pattern(whole, 3);
  std::vector<std::byte> pieces(whole.size());
  for (std::size_t at = 0; at < pieces.size(); at += 333) {
    const std::size_t size = std::min<std::size_t>(333, pieces.size() - at);
    ucx::fill_pattern(std::span(pieces).subspan(at, size), 3, at);
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_FALSE(find_pattern_mismatch(std::span(whole).subspan(777), 3, 777));
}

TEST(MemoryPattern, MismatchIsTheFirstByteThatDiffers) {
  std::vector<std::byte> bytes(4096);
  ucx::fill_pattern(bytes, 1);
  EXPECT_EQ(find_pattern_mismatch(bytes, 1), std::nullopt);
  EXPECT_TRUE(find_pattern_mismatch(bytes, 2)) << "of another content";
  EXPECT_TRUE(find_pattern_mismatch(bytes, 1, 4096)) << "of another page";
  for (const std::size_t wrong : {std::size_t{4095}, std::size_t{4000}, std::size_t{0}}) {
    bytes[wrong] ^= std::byte{1};
    EXPECT_EQ(find_pattern_mismatch(bytes, 1), wrong);
  }
}

TEST(MemoryPattern, OfNoBytesIsAsItShouldBe) {
  std::error_code ec = std::make_error_code(std::errc::io_error);
  ucx::fill_pattern({}, 1, 0, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(find_pattern_mismatch({}));
}

}  // namespace
}  // namespace ucx::test
