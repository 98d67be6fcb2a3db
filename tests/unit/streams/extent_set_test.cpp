#include "engine/extent_set.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace ucx::detail {
namespace {

TEST(ExtentSet, MergesWhatTouches) {
  extent_set set;
  EXPECT_TRUE(set.empty());
  set.add(10, 20);
  set.add(30, 40);
  EXPECT_EQ(set.count(), 2U);
  set.add(20, 30);
  EXPECT_EQ(set.count(), 1U);
  set.add(50, 60);
  set.add(0, 100);
  EXPECT_EQ(set.count(), 1U);
  set.clear();
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.next(0, 7), 7U);
}

TEST(ExtentSet, KnowsWhatItHolds) {
  extent_set set;
  set.add(10, 20);
  EXPECT_FALSE(set.overlaps(0, 10));
  EXPECT_FALSE(set.overlaps(20, 30));
  EXPECT_TRUE(set.overlaps(19, 20));
  EXPECT_TRUE(set.overlaps(0, 11));
  EXPECT_TRUE(set.overlaps(0, 100));
  EXPECT_EQ(set.next(0, 100), 10U);
  EXPECT_EQ(set.next(0, 5), 5U);
  EXPECT_EQ(set.next(20, 100), 100U);
}

TEST(ExtentSet, AgreesWithOneBitAByte) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    extent_set set;
    std::vector<bool> bytes(64);
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t begin = random() % 60;
      const std::uint64_t end = begin + 1 + random() % 4;
      set.add(begin, end);
      for (std::uint64_t at = begin; at < end; ++at) bytes[at] = true;
      std::size_t runs = 0;
      for (std::size_t at = 0; at < bytes.size(); ++at) {
        ASSERT_EQ(set.overlaps(at, at + 1), bytes[at]);
        if (bytes[at] && (at == 0 || !bytes[at - 1])) ++runs;
      }
      ASSERT_EQ(set.count(), runs);
    }
  }
}

}  // namespace
}  // namespace ucx::detail
