#include "ucx/peer_address.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_set>

#include "support/bytes/hex.hpp"
#include "ucx/error.hpp"
#include "wire/wire.hpp"

namespace ucx {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>(i * 7 + 1);
  return made;
}

worker_address sample() { return worker_address::from_native(some_bytes(37)); }

std::error_code error_of(std::span<const std::byte> wire) {
  std::error_code ec;
  const worker_address read = worker_address::decode(wire, ec);
  EXPECT_EQ(read.empty(), ec != std::error_code());
  return ec;
}

std::vector<std::byte> of_version(std::uint16_t version) {
  auto wire = sample().encode();
  wire.resize(wire.size() - 8);
  wire[4] = static_cast<std::byte>(version & 255U);
  wire[5] = static_cast<std::byte>(version >> 8U);
  detail::wire_writer writer;
  writer.put(wire);
  writer.put(detail::checksum(wire));
  return writer.bytes();
}

TEST(WorkerAddress, SurvivesTheWireAndText) {
  for (const std::size_t size : {0U, 1U, 37U, 1000U, 65536U}) {
    const auto native = some_bytes(size);
    const auto address = worker_address::from_native(native);
    EXPECT_EQ(worker_address::decode(address.encode()), address);
    EXPECT_EQ(parse_worker_address(to_string(address)), address);
    EXPECT_TRUE(
        std::equal(native.begin(), native.end(), address.native().begin(), address.native().end()));
    EXPECT_EQ(address.empty(), size == 0);
  }
}

// The format is a promise to other processes: if this fails, the version has to change.
TEST(WorkerAddress, HasTheDocumentedBytes) {
  const auto address =
      worker_address::from_native(std::vector{std::byte{0xca}, std::byte{0xfe}, std::byte{0x00}});
  EXPECT_EQ(to_string(address),
            "55585741"
            "0100"
            "0000"
            "17000000"
            "cafe00"
            "866cc99a4806dc14");
}

TEST(WorkerAddress, CutOffAnywhereIsBad) {
  const auto wire = sample().encode();
  for (std::size_t length = 0; length < wire.size(); ++length) {
    ASSERT_EQ(error_of(std::span(wire).first(length)), errc::bad_address) << length;
    ASSERT_EQ(error_of(std::span(wire).last(length)), errc::bad_address) << length;
  }
}

TEST(WorkerAddress, LengthenedByAnythingIsBad) {
  auto wire = sample().encode();
  for (int i = 0; i < 300; ++i) {
    wire.push_back(static_cast<std::byte>(i));
    ASSERT_EQ(error_of(wire), errc::bad_address) << i;
  }
}

TEST(WorkerAddress, WithAnyBitFlippedIsBad) {
  auto wire = sample().encode();
  for (std::size_t at = 0; at < wire.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const auto mask = static_cast<std::byte>(1U << bit);
      wire[at] ^= mask;
      ASSERT_EQ(error_of(wire), errc::bad_address) << "byte " << at << " bit " << bit;
      wire[at] ^= mask;
    }
  }
  EXPECT_FALSE(error_of(wire));
}

TEST(WorkerAddress, OfRandomBytesIsBad) {
  std::mt19937_64 random(19700101);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> wire(random() % 200);
    for (auto& each : wire) each = static_cast<std::byte>(random());
    ASSERT_EQ(error_of(wire), errc::bad_address);
  }
}

TEST(WorkerAddress, LongerThanAnyIsRefused) {
  const auto native = some_bytes(65537);
  try {
    worker_address::from_native(native);
    FAIL() << "taken";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
  }
  detail::wire_writer writer = detail::envelope::begin("UXWA");
  writer.put(native);
  EXPECT_EQ(error_of(detail::envelope::end(std::move(writer))), errc::bad_address);
}

TEST(WorkerAddress, OfAnotherVersionNamesBoth) {
  EXPECT_EQ(error_of(of_version(300)), errc::version_mismatch);
  try {
    worker_address::decode(of_version(300));
    FAIL() << "read";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::version_mismatch);
    const std::string text = failure.what();
    EXPECT_NE(text.find("version 300"), std::string::npos) << text;
    EXPECT_NE(text.find("version 1)"), std::string::npos) << text;
  }
  std::error_code ec;
  parse_worker_address(test::to_hex(of_version(2)), ec);
  EXPECT_EQ(ec, errc::version_mismatch);
}

TEST(WorkerAddress, ReadsBothCasesOfHexadecimal) {
  std::string text = to_string(sample());
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'f') letter = static_cast<char>(letter - 'a' + 'A');
  }
  EXPECT_EQ(parse_worker_address(text), sample());
}

TEST(WorkerAddress, ReadsNoTextButItsOwn) {
  const std::string good = to_string(sample());
  for (const std::string& text :
       {std::string(), std::string("zz"), good.substr(1), good + "0", good + "00", " " + good,
        good + "\n", "0x" + good, good.substr(0, good.size() - 1) + "g"}) {
    std::error_code ec;
    EXPECT_TRUE(parse_worker_address(text, ec).empty()) << text;
    EXPECT_EQ(ec, errc::bad_address) << text;
    EXPECT_THROW(parse_worker_address(text), error) << text;
  }
}

TEST(WorkerAddress, ComparesAndHashesByItsBytes) {
  const auto a = worker_address::from_native(some_bytes(3));
  const auto b = worker_address::from_native(some_bytes(4));
  EXPECT_EQ(a, worker_address::from_native(some_bytes(3)));
  EXPECT_NE(a, b);
  EXPECT_LT(a, b);
  EXPECT_LT(worker_address(), a);
  const std::unordered_set<worker_address> set{a, b, a, worker_address()};
  EXPECT_EQ(set.size(), 3U);
  EXPECT_EQ(std::hash<worker_address>()(a),
            std::hash<worker_address>()(worker_address::from_native(some_bytes(3))));
}

}  // namespace
}  // namespace ucx
