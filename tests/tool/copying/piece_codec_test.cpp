// Pieces of files, compressed: they come out as they went in, or not at all.
#include "copying/piece_codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "output/exit_code.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"

namespace ucx::tool {
namespace {

using bytes = std::vector<std::byte>;

bytes text(std::size_t size) {
  bytes all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = static_cast<std::byte>("some text "[i % 10]);
  return all;
}

/// Expects that it is refused, and that nothing is written behind `into`.
void expect_damage(codec by, std::span<const std::byte> coded, const content_digest& digest,
                   std::size_t size) {
  bytes room(size + 64, std::byte{0x5a});
  try {
    decode(by, coded, digest, std::span(room).first(size));
    ADD_FAILURE() << "it was decoded";
  } catch (const failure& why) {
    EXPECT_EQ(why.code(), exit_code::integrity);
  }
  EXPECT_TRUE(test::all_bytes_are(std::span(room).subspan(size), std::byte{0x5a}));
}

class PieceCodec : public ::testing::TestWithParam<codec> {};

TEST_P(PieceCodec, GivesBackEverySize) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{77},
                                 test::mib - 1, test::mib}) {
    for (const bytes& piece : {text(size), test::pattern(size, 7), bytes(size)}) {
      const coded_piece coded = encode(GetParam(), piece);
      EXPECT_LE(coded.bytes.size(), piece.size());
      EXPECT_EQ(coded.by == codec::none, coded.bytes.size() == piece.size());
      bytes back(size);
      decode(coded.by, coded.bytes, coded.digest, back);
      EXPECT_TRUE(back == piece) << size;
    }
  }
}

TEST_P(PieceCodec, MakesTextShorter) {
  const coded_piece coded = encode(GetParam(), text(test::mib));
  EXPECT_EQ(coded.by, GetParam());
  EXPECT_LT(coded.bytes.size(), test::mib / 50);
}

TEST_P(PieceCodec, RefusesWhatWasDamaged) {
  const bytes piece = text(5000);
  const coded_piece coded = encode(GetParam(), piece);
  for (std::size_t length = 0; length < coded.bytes.size(); ++length) {
    expect_damage(coded.by, std::span(coded.bytes).first(length), coded.digest, piece.size());
  }
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, piece.size() - 1, piece.size() + 1}) {
    expect_damage(coded.by, coded.bytes, coded.digest, size);
  }
  for (const bytes& nonsense : {test::pattern(9, 1), test::pattern(5000, 2), bytes(300)}) {
    expect_damage(coded.by, nonsense, coded.digest, piece.size());
  }
  expect_damage(coded.by, coded.bytes, content_digest{}, piece.size());
}

TEST_P(PieceCodec, GivesBackNothingElseWhereABitWasFlipped) {
  const bytes piece = text(5000);
  const coded_piece coded = encode(GetParam(), piece);
  for (std::size_t bit = 0; bit < 8 * coded.bytes.size(); ++bit) {
    bytes flipped = coded.bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    bytes back(piece.size());
    try {
      decode(coded.by, flipped, coded.digest, back);
      EXPECT_TRUE(back == piece) << bit;  // what it says of itself, and nothing depends on
    } catch (const failure& why) {
      EXPECT_EQ(why.code(), exit_code::integrity);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, PieceCodec, ::testing::Values(codec::zstd, codec::lz4),
                         [](const auto& which) { return std::string(name_of(which.param)); });

TEST(PieceCodecNames, AreThoseOfTheCodecs) {
  for (const codec each : {codec::none, codec::zstd, codec::lz4}) {
    EXPECT_EQ(codec_of(name_of(each)), each);
  }
  EXPECT_FALSE(codec_of("zip").has_value());
  EXPECT_FALSE(codec_of("").has_value());
}

}  // namespace
}  // namespace ucx::tool
