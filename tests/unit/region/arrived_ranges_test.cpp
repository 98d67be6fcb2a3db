#include "region/remote/arrived_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

namespace ucx::detail {
namespace {

TEST(ArrivedRanges, TakesEachPieceOnce) {
  arrived_ranges came;
  EXPECT_TRUE(came.add(0, 10));
  EXPECT_TRUE(came.add(20, 10));
  EXPECT_FALSE(came.add(0, 10));
  EXPECT_FALSE(came.add(9, 1));
  EXPECT_FALSE(came.add(20, 10));
  EXPECT_FALSE(came.add(15, 6));
  EXPECT_FALSE(came.add(29, 5));
  EXPECT_FALSE(came.add(10, 11));
  EXPECT_TRUE(came.add(10, 10));
  EXPECT_FALSE(came.add(29, 1));
  EXPECT_TRUE(came.add(30, 1));
  came.clear();
  EXPECT_TRUE(came.add(0, 10));
}

TEST(ArrivedRanges, TakesPiecesInAnyOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::size_t> order(64);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    arrived_ranges came;
    for (const std::size_t each : order) {
      EXPECT_TRUE(came.add(each * 8, 8));
      EXPECT_FALSE(came.add(each * 8 + 3, 2));
    }
    EXPECT_TRUE(came.add(64 * 8, 1));
  }
}

}  // namespace
}  // namespace ucx::detail
