#include "wire/brief_parcel.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace ucx::detail {
namespace {

brief_parcel sample(std::uint64_t tag) {
  brief_parcel made;
  made.kind = message_kind::active;
  made.credit = 0xc1;
  made.number = 0x24232221;
  made.session = 0x1817161514131211;
  made.tag = tag;
  return made;
}

std::vector<std::byte> encoded(const brief_parcel& from) {
  std::vector<std::byte> bytes(brief_parcel::longest);
  bytes.resize(from.encode(std::span(bytes).first<brief_parcel::longest>()));
  return bytes;
}

TEST(BriefParcel, EncodesTheBytesOfTheDocument) {
  const std::initializer_list<unsigned> golden{
      1,    9,    0x81, 0xc1,                          // version, code, tag's size and kind, credit
      0x21, 0x22, 0x23, 0x24,                          // number, its lower half
      0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,  // session
      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,  // tag
  };
  std::vector<std::byte> expected;
  for (const unsigned each : golden) expected.push_back(static_cast<std::byte>(each));
  EXPECT_EQ(encoded(sample(0x3837363534333231)), expected);
  expected.resize(20);
  expected[2] = std::byte{0x41};
  EXPECT_EQ(encoded(sample(0x34333231)), expected);
  expected.resize(16);
  expected[2] = std::byte{0x01};
  EXPECT_EQ(encoded(sample(0)), expected);
}

TEST(BriefParcel, IsReadAsItWasWritten) {
  for (const std::uint64_t tag : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffffffff},
                                  std::uint64_t{0x100000000}, ~std::uint64_t{0}}) {
    for (int kind = 0; kind <= 2; ++kind) {
      for (const std::size_t header : {0U, 1U, 64U}) {
        brief_parcel said = sample(tag);
        said.kind = static_cast<message_kind>(kind);
        std::vector<std::byte> wire = encoded(said);
        const std::size_t ours = wire.size();
        wire.resize(ours + header, std::byte{0x77});
        EXPECT_TRUE(is_brief(wire));
        const auto read = decode_brief_parcel(wire);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->said.kind, said.kind);
        EXPECT_EQ(read->said.credit, said.credit);
        EXPECT_EQ(read->said.session, said.session);
        EXPECT_EQ(read->said.number, said.number);
        EXPECT_EQ(read->said.tag, tag);
        EXPECT_EQ(read->header.size(), header);
        for (std::size_t size = 0; size < ours; ++size) {
          EXPECT_FALSE(decode_brief_parcel(std::span(wire).first(size))) << size;
        }
      }
    }
  }
}

TEST(BriefParcel, SaysTheSameAsAParcel) {
  const brief_parcel said = sample(7);
  const parcel same = said.whole(0x2827262524232220, 5, 77);
  EXPECT_EQ(same.code, parcel_code::message);
  EXPECT_EQ(same.kind, message_kind::active);
  EXPECT_FALSE(same.acknowledge);
  EXPECT_FALSE(same.lends);
  EXPECT_EQ(same.header_length, 5U);
  EXPECT_EQ(same.credit, said.credit);
  EXPECT_EQ(same.session, said.session);
  EXPECT_EQ(same.number, 0x2827262524232221U);
  EXPECT_EQ(same.tag, 7U);
  EXPECT_EQ(same.length, 77U);
}

TEST(BriefParcel, RefusesWhatBreaksItsRules) {
  const std::vector<std::byte> right = encoded(sample(5));
  ASSERT_TRUE(decode_brief_parcel(right));
  const std::initializer_list<std::pair<std::size_t, unsigned>> damages{
      {0, 0}, {0, 2}, {1, 0}, {1, 10}, {2, 0x43}, {2, 0x4f}, {2, 0x11}, {2, 0x51}, {2, 0xf1}};
  for (const auto& [at, value] : damages) {
    std::vector<std::byte> wire = right;
    wire[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(decode_brief_parcel(wire)) << at << " as " << value;
  }
  std::vector<std::byte> wire = right;
  wire.resize(wire.size() + parcel::longest_user_header);
  EXPECT_TRUE(decode_brief_parcel(wire));
  wire.push_back(std::byte{0});
  EXPECT_FALSE(decode_brief_parcel(wire)) << "a header that is too long";
}

TEST(BriefParcel, FlippedBitsAreReadOrRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> wire = encoded(sample(random() % 3 == 0 ? 0 : random()));
    for (unsigned flips = random() % 4; flips > 0; --flips) {
      wire[random() % wire.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    }
    wire.resize(random() % 8 == 0 ? random() % 60 : wire.size());
    if (const auto read = decode_brief_parcel(wire)) {
      EXPECT_LE(read->header.size(), wire.size() - brief_parcel::tag_at);
      EXPECT_LE(static_cast<unsigned>(read->said.kind), 2U);
    }
  }
}

TEST(BriefParcel, NumberIsTheOneThatIsNextToWhatIsExpected) {
  constexpr std::uint64_t turn = std::uint64_t{1} << 32U;
  for (const std::uint64_t expected :
       {turn - 2, turn - 1, turn, turn + 1, 7 * turn, 7 * turn + 5}) {
    for (const std::int64_t ahead : {-2, -1, 0, 1, 2, 1 << 24, 0x7fffffff}) {
      const std::uint64_t number = expected + static_cast<std::uint64_t>(ahead);
      EXPECT_EQ(whole_number(static_cast<std::uint32_t>(number), expected), number);
    }
  }
  // What was before the first is no number that could be expected.
  EXPECT_GT(whole_number(0xffffffff, 1), turn);
}

}  // namespace
}  // namespace ucx::detail
