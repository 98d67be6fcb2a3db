#include "cuda/waited_copy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

TEST(WaitedCopy, IsNotWaitedForWhenItHasEnded) {
  waited_copy copy;
  copy.error = errc::io_error;
  copy.done();
  EXPECT_EQ(copy.wait(clock::now()), errc::io_error);
  EXPECT_TRUE(copy.wanted());
}

TEST(WaitedCopy, IsGivenUpAtItsDeadline) {
  waited_copy copy;
  EXPECT_EQ(copy.wait(clock::now() + 1ms), errc::timed_out);
  EXPECT_FALSE(copy.wanted());
  copy.done();  // nobody hears of it
}

TEST(WaitedCopy, LetsGoOfWhatItKeepsBeforeAnybodyHearsOfItsEnd) {
  const auto kept = std::make_shared<int>(0);
  waited_copy copy(kept);
  EXPECT_EQ(kept.use_count(), 2);
  copy.done();
  EXPECT_EQ(kept.use_count(), 1);
}

// Its end comes while it is looked for, while who waits falls asleep, and long after.
TEST(WaitedCopy, IsHeardOfWheneverItEnds) {
  waited_copy copy;
  for (int round = 0; round < 2000; ++round) {
    copy.begin_again(nullptr);
    std::thread copier([&, wait = round % 20 * 10us] {
      std::this_thread::sleep_for(wait);
      copy.done();
    });
    EXPECT_FALSE(copy.wait(clock::now() + 30s));
    copier.join();
  }
}

}  // namespace
}  // namespace ucx::detail
