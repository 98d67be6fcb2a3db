#include "base/deadline.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, IsNeverBeyondTheEndOfTime) {
  const clock::time_point now(1h);
  EXPECT_EQ(after(now, 1s), now + 1s);
  EXPECT_EQ(after(now, std::chrono::nanoseconds::max()), clock::time_point::max());
}

TEST(Deadline, IsSharedByThoseWhoAreToTry) {
  EXPECT_EQ(share_of(9s, 3), 3s);
  EXPECT_EQ(share_of(9s, 1), 9s);
  EXPECT_EQ(share_of(0s, 3), 0s);
  EXPECT_EQ(share_of(-1s, 3), 0s);
  EXPECT_EQ(share_of(9s, 0), 0s);
}

}  // namespace
}  // namespace ucx::detail
