// The key to a message that its receiver fetches by RMA.
#include "wire/rma_offer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "wire/parcel.hpp"

namespace ucx::detail {
namespace {

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> made;
  for (const unsigned each : values) made.push_back(static_cast<std::byte>(each));
  return made;
}

std::vector<std::byte> wire_of(const rma_offer& from) {
  std::vector<std::byte> made(from.size());
  from.encode(made);
  return made;
}

TEST(RmaOffer, EncodesTheBytesOfTheDocument) {
  const std::vector<std::byte> key = bytes({0xa1, 0xa2, 0xa3});
  EXPECT_EQ(wire_of({0x1817161514131211, key}),
            bytes({0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,  // address
                   0x03, 0x00,                                      // length of the key
                   0xa1, 0xa2, 0xa3}));
}

TEST(RmaOffer, ComesBackAsItWasWritten) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{40}, rma_offer::most_key}) {
    const std::vector<std::byte> key(size, std::byte{7});
    const std::vector<std::byte> wire = wire_of({5, key});
    const auto read = decode_rma_offer(wire, 100);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->address, 5U);
    EXPECT_TRUE(std::equal(read->key.begin(), read->key.end(), key.begin(), key.end()));
    for (std::size_t cut = 0; cut < wire.size(); ++cut) {
      EXPECT_FALSE(decode_rma_offer(std::span(wire).first(cut), 100)) << cut;
    }
  }
}

TEST(RmaOffer, ThatMakesNoSenseIsNone) {
  const std::vector<std::byte> key(40, std::byte{7});
  constexpr std::uint64_t last = ~std::uint64_t{0};
  EXPECT_TRUE(decode_rma_offer(wire_of({last - 100, key}), 100));
  EXPECT_FALSE(decode_rma_offer(wire_of({last - 100, key}), 101)) << "it wraps around";
  EXPECT_FALSE(decode_rma_offer(wire_of({5, key}), last));
  EXPECT_FALSE(decode_rma_offer(wire_of({5, key}), 0));
  EXPECT_FALSE(decode_rma_offer(wire_of({0, key}), 100));
  EXPECT_FALSE(decode_rma_offer(wire_of({5, {}}), 100)) << "no key";
  const std::vector<std::byte> long_key(rma_offer::most_key + 1);
  EXPECT_FALSE(decode_rma_offer(wire_of({5, long_key}), 100));
  std::vector<std::byte> wire = wire_of({5, key});
  wire[8] = std::byte{39};
  EXPECT_FALSE(decode_rma_offer(wire, 100)) << "a byte is left over";
  wire[8] = std::byte{41};
  EXPECT_FALSE(decode_rma_offer(wire, 100));
}

TEST(RmaOffer, FollowsTheHeaderOfItsAnnouncement) {
  parcel announce;
  announce.code = parcel_code::announce;
  announce.keyed = true;
  announce.header_length = 3;
  announce.length = 100;
  const std::vector<std::byte> key(40, std::byte{7});
  const std::vector<std::byte> offer = wire_of({5, key});
  std::vector<std::byte> wire(parcel::size + 3, std::byte{0x77});
  announce.encode(std::span(wire).first<parcel::size>());
  EXPECT_EQ(wire[3], std::byte{4});
  EXPECT_FALSE(decode_parcel(wire, 0)) << "no offer";
  wire.insert(wire.end(), offer.begin(), offer.end());
  const auto read = decode_parcel(wire, 0);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->said.keyed);
  EXPECT_FALSE(read->said.lends);
  EXPECT_EQ(read->header.size(), 3U);
  EXPECT_TRUE(decode_rma_offer(read->offer, read->said.length));
  EXPECT_FALSE(decode_parcel(wire, 1)) << "a payload where there is none";
  for (const unsigned flags : {0U, 2U, 3U, 5U, 6U, 8U, 12U}) {
    wire[3] = static_cast<std::byte>(flags);
    EXPECT_FALSE(decode_parcel(wire, 0)) << flags;
  }
  wire[3] = std::byte{4};
  for (const int code : {1, 3, 4, 5, 6, 7}) {
    wire[1] = static_cast<std::byte>(code);
    EXPECT_FALSE(decode_parcel(wire, 0)) << code;
  }
  wire[1] = std::byte{2};
  wire.resize(parcel::size + 3 + rma_offer::head + rma_offer::most_key);
  EXPECT_TRUE(decode_parcel(wire, 0));
  wire.resize(wire.size() + 1);
  EXPECT_FALSE(decode_parcel(wire, 0)) << "a key that is too long";
}

}  // namespace
}  // namespace ucx::detail
