// What goes over a socket of ours, byte by byte.
#include "carrier/segment.hpp"

#include <array>
#include <cstddef>
#include <span>

#include <gtest/gtest.h>

namespace ucx::detail {
namespace {

using bytes_of_head = std::array<std::byte, segment_head::size>;

TEST(Segment, HasItsLengthsAndIdInPlace) {
  const bytes_of_head said = segment_head{0x01020304U, 0x0506U, 7}.encode();
  const bytes_of_head expected{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1},
                               std::byte{6}, std::byte{5}, std::byte{7}, std::byte{0}};
  EXPECT_EQ(said, expected);
}

TEST(Segment, IsReadAsItWasWritten) {
  const auto read = decode_segment_head(
      segment_head{segment_head::longest_payload, segment_head::longest_header, 255}.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->payload, segment_head::longest_payload);
  EXPECT_EQ(read->header, segment_head::longest_header);
  EXPECT_EQ(read->id, 255);
}

TEST(Segment, IsRefusedWhereItIsTooLongOrReserved) {
  EXPECT_FALSE(decode_segment_head(
      segment_head{static_cast<std::uint32_t>(segment_head::longest_payload + 1), 0, 1}.encode()));
  EXPECT_FALSE(decode_segment_head(
      segment_head{0, static_cast<std::uint16_t>(segment_head::longest_header + 1), 1}.encode()));
  bytes_of_head reserved = segment_head{0, 0, 1}.encode();
  for (const int bits : {2, 3, 0x80, 0xff}) {
    reserved[7] = static_cast<std::byte>(bits);
    EXPECT_FALSE(decode_segment_head(reserved)) << bits;
  }
}

TEST(Segment, ComesWithAFileWhereItHasNoPayload) {
  const auto read = decode_segment_head(segment_head{0, 64, 255, true}.encode());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->has_file);
  EXPECT_FALSE(decode_segment_head(segment_head{0, 64, 255}.encode())->has_file);
  EXPECT_FALSE(decode_segment_head(segment_head{1, 64, 255, true}.encode()));
}

TEST(Preamble, TellsPeersOfOtherVersionsFromStrangers) {
  auto said = preamble::encoded;
  EXPECT_EQ(preamble::look_at(said), preamble::verdict::ours);
  said[4] = std::byte{2};
  EXPECT_EQ(preamble::look_at(said), preamble::verdict::other_version);
  said = preamble::encoded;
  said[6] = std::byte{1};
  EXPECT_EQ(preamble::look_at(said), preamble::verdict::refused);
  said[6] = std::byte{2};
  EXPECT_EQ(preamble::look_at(said), preamble::verdict::other_version);
  said = preamble::encoded;
  said[0] = std::byte{'G'};
  EXPECT_EQ(preamble::look_at(said), preamble::verdict::foreign);
}

}  // namespace
}  // namespace ucx::detail
