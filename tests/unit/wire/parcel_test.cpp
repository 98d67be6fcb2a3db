#include "wire/parcel.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "wire/cma_offer.hpp"

namespace ucx::detail {
namespace {

parcel sample(parcel_code code) {
  parcel made;
  made.code = code;
  made.kind = message_kind::active;
  made.credit = 0x0201;
  made.session = 0x1817161514131211;
  made.number = 0x2827262524232221;
  made.tag = 0x3837363534333231;
  made.length = 0x4847464544434241;
  return made;
}

std::vector<std::byte> encoded(const parcel& from) {
  std::vector<std::byte> bytes(parcel::size);
  from.encode(std::span(bytes).first<parcel::size>());
  return bytes;
}

TEST(Parcel, EncodesTheBytesOfTheDocument) {
  parcel announce = sample(parcel_code::announce);
  announce.header_length = 0x0605;
  const std::initializer_list<unsigned> golden{
      1,    2,    1,    0,                             // version, code, kind, flags
      0x05, 0x06, 0x01, 0x02,                          // header length, credit
      0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,  // session
      0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,  // number
      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,  // tag
      0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,  // length
  };
  std::vector<std::byte> expected;
  for (const unsigned each : golden) expected.push_back(static_cast<std::byte>(each));
  EXPECT_EQ(encoded(announce), expected);
}

TEST(Parcel, ReadsWhatItWrote) {
  for (int code = 1; code <= 8; ++code) {
    parcel said = sample(static_cast<parcel_code>(code));
    std::size_t payload = 0;
    std::size_t header = 0;
    if (said.code == parcel_code::message) {
      said.length = payload = 77;
      said.acknowledge = true;
    }
    if (said.code == parcel_code::piece) payload = 5;
    if (code <= 2) said.header_length = static_cast<std::uint16_t>(header = 9);
    if (code == 5 || code == 6) said.status = 21;
    if (code == 8) said.tag = 5;
    std::vector<std::byte> wire = encoded(said);
    for (std::size_t i = 0; i < header; ++i) wire.push_back(std::byte{0x77});
    const auto read = decode_parcel(wire, payload);
    ASSERT_TRUE(read) << code;
    EXPECT_EQ(read->said.code, said.code);
    EXPECT_EQ(read->said.kind, said.kind);
    EXPECT_EQ(read->said.acknowledge, said.acknowledge);
    EXPECT_EQ(read->said.header_length, said.header_length);
    EXPECT_EQ(read->said.status, said.status);
    EXPECT_EQ(read->said.credit, said.credit);
    EXPECT_EQ(read->said.session, said.session);
    EXPECT_EQ(read->said.number, said.number);
    EXPECT_EQ(read->said.tag, said.tag);
    EXPECT_EQ(read->said.length, said.length);
    EXPECT_EQ(read->header.size(), header);
    for (std::size_t size = 0; size < wire.size(); ++size) {
      EXPECT_FALSE(decode_parcel(std::span(wire).first(size), payload)) << size;
    }
    wire.push_back(std::byte{0});
    EXPECT_FALSE(decode_parcel(wire, payload)) << "a byte is left over";
  }
}

TEST(Parcel, RefusesWhatBreaksItsRules) {
  parcel message = sample(parcel_code::message);
  message.length = 4;
  EXPECT_TRUE(decode_parcel(encoded(message), 4));
  EXPECT_FALSE(decode_parcel(encoded(message), 5)) << "another payload than it says";
  parcel grant = sample(parcel_code::grant);
  EXPECT_FALSE(decode_parcel(encoded(grant), 1)) << "a payload where there is none";
  grant.acknowledge = true;
  EXPECT_FALSE(decode_parcel(encoded(grant), 0)) << "a flag where it means nothing";
  parcel piece = sample(parcel_code::piece);
  EXPECT_FALSE(decode_parcel(encoded(piece), 0)) << "a piece of nothing";
  piece.length = ~std::uint64_t{0};
  EXPECT_FALSE(decode_parcel(encoded(piece), 1)) << "an offset that overflows";
  const std::initializer_list<std::pair<std::size_t, unsigned>> damages{
      {0, 2}, {1, 0}, {1, 10}, {2, 3}, {3, 2}};
  for (const auto& [at, value] : damages) {
    std::vector<std::byte> wire = encoded(message);
    wire[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(decode_parcel(wire, 4)) << at;
  }
  for (const int code : {3, 4, 5, 6, 7}) {
    std::vector<std::byte> wire = encoded(sample(static_cast<parcel_code>(code)));
    const std::size_t payload = code == 4 ? 1 : 0;
    EXPECT_TRUE(decode_parcel(wire, payload));
    wire[3] = std::byte{0x10};
    EXPECT_FALSE(decode_parcel(wire, payload)) << "memory of a message that it is not: " << code;
  }
  for (const std::uint64_t what : {0U, 1U, 5U, 6U}) {
    parcel loan = sample(parcel_code::loan);
    loan.tag = what;
    EXPECT_EQ(decode_parcel(encoded(loan), 0).has_value(), what == 1 || what == 5) << what;
  }
  message.header_length = parcel::longest_user_header + 1;
  std::vector<std::byte> wire = encoded(message);
  wire.resize(wire.size() + message.header_length);
  EXPECT_FALSE(decode_parcel(wire, 4)) << "a header that is too long";
}

TEST(Parcel, OfAMessageThatIsLentHasAnOfferBehindTheHeader) {
  parcel announce = sample(parcel_code::announce);
  announce.lends = true;
  announce.header_length = 3;
  const cma_offer offer{.process = 77, .address = 0x1020304050607080, .record = 9, .token = 5};
  std::vector<std::byte> wire = encoded(announce);
  EXPECT_EQ(wire[3], std::byte{2});
  wire.resize(parcel::size + 3 + cma_offer::size, std::byte{0x77});
  offer.encode(std::span(wire).last<cma_offer::size>());
  const auto read = decode_parcel(wire, 0);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->said.lends);
  EXPECT_EQ(read->header.size(), 3U);
  const auto found = decode_offer(read->offer);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->process, offer.process);
  EXPECT_EQ(found->address, offer.address);
  EXPECT_EQ(found->record, offer.record);
  EXPECT_EQ(found->token, offer.token);
  EXPECT_FALSE(decode_parcel(std::span(wire).first(wire.size() - 1), 0));
  EXPECT_FALSE(decode_parcel(wire, 1)) << "a payload where there is none";
  wire[3] = std::byte{0};
  EXPECT_FALSE(decode_parcel(wire, 0)) << "an offer that the flag does not announce";
  wire[3] = std::byte{3};
  EXPECT_FALSE(decode_parcel(wire, 0)) << "two flags";
  for (const int code : {1, 3, 4, 5, 6, 7}) {
    wire[3] = std::byte{2};
    wire[1] = static_cast<std::byte>(code);
    EXPECT_FALSE(decode_parcel(wire, 0)) << code;
  }
}

TEST(Parcel, SaysWhichMemoryTheMessageIsOf) {
  for (const bool acknowledge : {false, true}) {
    parcel message = sample(parcel_code::message);
    message.length = 4;
    message.acknowledge = acknowledge;
    const auto read_again = [&] { return decode_parcel(encoded(message), 4)->said; };
    for (const memory_kind kind : {memory_kind::host, memory_kind::cuda, memory_kind::cuda_managed,
                                   memory_kind::rocm, memory_kind::other}) {
      message.memory = kind;
      EXPECT_EQ(read_again().memory, kind);
      EXPECT_EQ(read_again().acknowledge, acknowledge);
    }
    message.memory = memory_kind::cuda_pinned;
    EXPECT_EQ(read_again().memory, memory_kind::host) << "to peers it is that";
    message.memory = memory_kind::host;
    std::vector<std::byte> wire = encoded(message);
    wire[3] |= std::byte{0x70};
    EXPECT_EQ(decode_parcel(wire, 4)->said.memory, memory_kind::other) << "one of a later version";
  }
}

TEST(Parcel, OfferThatMakesNoSenseIsNone) {
  std::vector<std::byte> wire(cma_offer::size);
  const auto accepted = [&](const cma_offer& offer) {
    offer.encode(std::span(wire).first<cma_offer::size>());
    return decode_offer(wire).has_value();
  };
  const cma_offer good{.process = 1, .address = 2, .record = 3, .token = 4};
  EXPECT_TRUE(accepted(good));
  for (const std::uint64_t process :
       {std::uint64_t{0}, std::uint64_t{1} << 31U, ~std::uint64_t{0}}) {
    cma_offer bad = good;
    bad.process = process;
    EXPECT_FALSE(accepted(bad)) << process;
  }
  cma_offer bad = good;
  bad.token = 0;
  EXPECT_FALSE(accepted(bad));
  EXPECT_FALSE(decode_offer(std::span(wire).first(cma_offer::size - 1)));
  EXPECT_FALSE(decode_offer({}));
}

TEST(Parcel, FlippedBitsAreReadOrRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    parcel said = sample(static_cast<parcel_code>(1 + random() % 7));
    said.length = random() % 100;
    std::vector<std::byte> wire = encoded(said);
    for (unsigned flips = random() % 4; flips > 0; --flips) {
      wire[random() % wire.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    }
    wire.resize(random() % 8 == 0 ? random() % 60 : wire.size());
    const std::size_t payload = random() % 100;
    const auto read = decode_parcel(wire, payload);
    if (!read) continue;
    EXPECT_LE(read->header.size(), wire.size());
    if (read->said.code == parcel_code::message) {
      EXPECT_EQ(read->said.length, payload);
    }
  }
}

TEST(Parcel, EveryMessageTakesAUnit) {
  EXPECT_EQ(units_of(0), 1U);
  EXPECT_EQ(units_of(1), 2U);
  EXPECT_EQ(units_of(256), 2U);
  EXPECT_EQ(units_of(257), 3U);
}

}  // namespace
}  // namespace ucx::detail
