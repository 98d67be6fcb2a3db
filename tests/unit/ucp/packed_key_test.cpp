// Keys of UCX's, as far as their form is known here.
#include "ucp/packed_key.hpp"

#include <gtest/gtest.h>

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

TEST(PackedKey, OfNoDomainOrManyIsNone) {
  EXPECT_FALSE(is_packed_key(key_of(0, {0, 0, 0})));
  std::vector<std::byte> many = key_of(~std::uint64_t{0}, {0});
  many.resize(512);
  EXPECT_FALSE(is_packed_key(many));
}

TEST(PackedKey, OfADevicesMemoryIsNone) {
  EXPECT_FALSE(is_packed_key(key_of(1, {1, 1, 9})));
  EXPECT_FALSE(is_packed_key(key_of(1, {255, 1, 9})));
  EXPECT_TRUE(is_packed_key(key_of(1, {0, 1, 9})));
}

}  // namespace
}  // namespace ucx::detail
