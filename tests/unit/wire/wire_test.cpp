#include "wire/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "wire/protocol.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

TEST(WireWriter, WritesTheLowestByteFirst) {
  wire_writer writer;
  writer.put(std::uint8_t{0x01});
  writer.put(std::uint16_t{0x0203});
  writer.put(std::uint32_t{0x04050607});
  writer.put(std::uint64_t{0x08090a0b0c0d0e0f});
  writer.put(bytes({0xaa, 0xbb}));
  EXPECT_EQ(writer.bytes(), bytes({0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e, 0x0d, 0x0c,
                                   0x0b, 0x0a, 0x09, 0x08, 0xaa, 0xbb}));
}

TEST(WireReader, ReadsWhatTheWriterWrote) {
  wire_writer writer;
  writer.put(std::uint64_t{0xfedcba9876543210});
  writer.put(std::uint32_t{0x89abcdef});
  writer.put(std::uint16_t{0xfeff});
  writer.put(std::uint8_t{0xfe});
  writer.put(bytes({1, 2, 3}));
  wire_reader reader(writer.bytes());
  EXPECT_EQ(reader.take<std::uint64_t>(), 0xfedcba9876543210U);
  EXPECT_EQ(reader.take<std::uint32_t>(), 0x89abcdefU);
  EXPECT_EQ(reader.take<std::uint16_t>(), 0xfeffU);
  EXPECT_EQ(reader.take<std::uint8_t>(), 0xfeU);
  EXPECT_FALSE(reader.finished());
  EXPECT_THAT(reader.take(3), ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}));
  EXPECT_TRUE(reader.finished());
}

TEST(WireReader, GivesNothingPastTheEndAndStaysFailed) {
  const auto three = bytes({1, 2, 3});
  wire_reader reader(three);
  EXPECT_EQ(reader.take<std::uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.take<std::uint8_t>(), 0U);
  EXPECT_TRUE(reader.take(0).empty());
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.finished());
}

TEST(WireReader, RefusesCountsThatWouldOverflow) {
  const auto three = bytes({1, 2, 3});
  wire_reader reader(three);
  EXPECT_TRUE(reader.take(std::numeric_limits<std::size_t>::max()).empty());
  EXPECT_FALSE(reader.ok());
}

TEST(Checksum, IsXxh3AsPublished) {
  // Reference values of XXH3_64bits with seed 0.
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2U);
  const std::string text = "xxhash";
  EXPECT_EQ(checksum(std::as_bytes(std::span(text))), 0xaa4c2b42ae6b13deU);
}

std::vector<std::byte> sealed(std::span<const std::byte> body) {
  wire_writer writer = envelope::begin("TEST");
  writer.put(body);
  return envelope::end(std::move(writer));
}

TEST(Envelope, GivesItsBodyBack) {
  std::mt19937 random(1);
  for (const std::size_t size : {0U, 1U, 7U, 100U, 5000U}) {
    std::vector<std::byte> body(size);
    for (auto& each : body) each = static_cast<std::byte>(random());
    const auto wire = sealed(body);
    EXPECT_EQ(wire.size(), size + envelope::overhead);
    const envelope opened(wire, "TEST");
    ASSERT_EQ(opened.outcome(), envelope::verdict::intact);
    EXPECT_EQ(opened.version(), unsigned{protocol_version_number});
    EXPECT_TRUE(std::equal(body.begin(), body.end(), opened.body().begin(), opened.body().end()));
  }
}

TEST(Envelope, OfOtherLettersIsDamaged) {
  const auto wire = sealed(bytes({1, 2, 3}));
  EXPECT_EQ(envelope(wire, "TSET").outcome(), envelope::verdict::damaged);
  EXPECT_EQ(envelope(wire, "TSET").body().size(), 0U);
}

TEST(Envelope, CutOffOrLengthenedIsDamaged) {
  const auto wire = sealed(bytes({1, 2, 3, 4, 5}));
  for (std::size_t length = 0; length < wire.size(); ++length) {
    EXPECT_EQ(envelope(std::span(wire).first(length), "TEST").outcome(),
              envelope::verdict::damaged);
    EXPECT_EQ(envelope(std::span(wire).subspan(wire.size() - length), "TEST").outcome(),
              envelope::verdict::damaged);
  }
  auto longer = wire;
  for (int i = 0; i < 64; ++i) {
    longer.push_back(std::byte{0});
    EXPECT_EQ(envelope(longer, "TEST").outcome(), envelope::verdict::damaged);
  }
}

/// Puts an honest checksum under bytes that were changed.
std::vector<std::byte> resealed(std::vector<std::byte> wire) {
  wire.resize(wire.size() - 8);
  wire_writer writer;
  writer.put(wire);
  writer.put(checksum(wire));
  return writer.bytes();
}

TEST(Envelope, WithAWrongLengthIsDamagedThoughItsChecksumHolds) {
  auto wire = sealed(bytes({1, 2, 3, 4, 5}));
  wire[8] = static_cast<std::byte>(std::to_integer<int>(wire[8]) + 1);
  EXPECT_EQ(envelope(resealed(wire), "TEST").outcome(), envelope::verdict::damaged);
}

TEST(Envelope, WithReservedBitsIsDamagedThoughItsChecksumHolds) {
  for (const std::size_t at : {6U, 7U}) {
    auto wire = sealed(bytes({1, 2, 3, 4, 5}));
    wire[at] = std::byte{1};
    EXPECT_EQ(envelope(resealed(wire), "TEST").outcome(), envelope::verdict::damaged);
  }
}

TEST(Envelope, OfAnotherVersionSaysWhich) {
  auto wire = sealed(bytes({1, 2, 3}));
  wire[4] = std::byte{0x02};
  wire[5] = std::byte{0x01};
  wire[6] = std::byte{0x01};  // what another version makes of it is its own affair
  const envelope opened(resealed(wire), "TEST");
  EXPECT_EQ(opened.outcome(), envelope::verdict::other_version);
  EXPECT_EQ(opened.version(), 0x0102U);
  EXPECT_TRUE(opened.body().empty());
}

}  // namespace
}  // namespace ucx::detail
