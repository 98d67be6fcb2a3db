// Keys of UCX's, as far as their form is known here.
#include "ucp/packed_key.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace ucx::detail {
namespace {

std::vector<std::byte> key_of(std::uint64_t domains, std::initializer_list<unsigned> rest) {
  std::vector<std::byte> made(sizeof domains);
  std::memcpy(made.data(), &domains, sizeof domains);
  for (const unsigned each : rest) made.push_back(static_cast<std::byte>(each));
  return made;
}

TEST(PackedKey, IsReadWithinItsBytes) {
  const std::vector<std::byte> key = key_of(0b101, {0, 3, 1, 2, 3, 2, 9, 9});
  EXPECT_TRUE(is_packed_key(key));
  for (std::size_t cut = 0; cut < key.size(); ++cut) {
    EXPECT_FALSE(is_packed_key(std::span(key).first(cut))) << cut;
  }
  std::vector<std::byte> more = key;
  more.insert(more.end(), 10, std::byte{1});
  EXPECT_TRUE(is_packed_key(more)) << "distances of devices follow";
}

TEST(PackedKey, OfNoDomainOrManyIsNotForMessages) {
  const std::vector<std::byte> none = key_of(0, {0, 0, 0});
  EXPECT_TRUE(is_packed_key(none)) << "UCX emulates RMA by such";
  EXPECT_FALSE(is_key_of_domains(none));
  std::vector<std::byte> many = key_of(~std::uint64_t{0}, {0});
  many.resize(512);
  EXPECT_TRUE(is_packed_key(many));
  EXPECT_FALSE(is_key_of_domains(many));
  EXPECT_TRUE(is_key_of_domains(key_of(1, {0, 1, 9})));
  EXPECT_FALSE(is_key_of_domains(key_of(1, {0, 1})));
}

TEST(PackedKey, OfADevicesMemoryIsNotForMessages) {
  EXPECT_TRUE(is_packed_key(key_of(1, {1, 1, 9})));
  EXPECT_FALSE(is_key_of_domains(key_of(1, {1, 1, 9})));
  EXPECT_FALSE(is_packed_key(key_of(1, {255, 1, 9}))) << "no such memory";
}

TEST(PaddedKey, EndsWhereUcxLooksForItsEnd) {
  const std::vector<std::byte> key = key_of(0b101, {0, 3, 1, 2, 3, 2, 9, 9});
  const padded_key padded(key);
  ASSERT_NE(padded.data(), nullptr);
  const auto* const bytes = static_cast<const std::byte*>(padded.data());
  EXPECT_TRUE(std::equal(key.begin(), key.end(), bytes));
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(bytes[key.size() + i], std::byte{0xff}) << i;
}

TEST(PaddedKey, HoldsNothingThatIsNoKey) {
  std::vector<std::byte> key = key_of(1, {0, 1, 9});
  EXPECT_EQ(padded_key(std::span(key).first(key.size() - 1)).data(), nullptr);
  EXPECT_EQ(padded_key({}).data(), nullptr);
  key.resize(padded_key::longest);
  EXPECT_NE(padded_key(key).data(), nullptr);
  key.resize(padded_key::longest + 1);
  EXPECT_EQ(padded_key(key).data(), nullptr);
}

}  // namespace
}  // namespace ucx::detail
