// When rounds look at deadlines, and how often they ask what time it is.
#include "worker/tick_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

/// A clock that stands still, beside a cheap one that is behind.
class standing_time final : public time_source {
 public:
  clock::time_point now() override {
    ++asked;
    return clock::time_point() + time;
  }
  clock::time_point now_or_soon() override {
    ++asked_cheaply;
    return clock::time_point() + time - behind;
  }
  bool relax() override { return false; }

  std::chrono::nanoseconds time = 1h;
  std::chrono::nanoseconds behind = 0ns;
  int asked = 0;
  int asked_cheaply = 0;
};

class TickClock : public testing::Test {
 protected:
  clock::time_point at(std::chrono::nanoseconds when) const { return clock::time_point() + when; }

  standing_time time_;
  tick_clock clock_{time_};
};

TEST_F(TickClock, AsksNobodyWhereThereIsNoDeadline) {
  EXPECT_FALSE(clock_.take_due());
  EXPECT_EQ(clock_.until_next(), std::chrono::nanoseconds::max());
  EXPECT_EQ(time_.asked + time_.asked_cheaply, 0);
}

TEST_F(TickClock, AsksTheCheapClockAsLongAsNothingIsDue) {
  EXPECT_TRUE(clock_.tick_by(at(2h)));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(clock_.take_due());
  EXPECT_EQ(time_.asked, 0);
  EXPECT_EQ(time_.asked_cheaply, 10);
}

TEST_F(TickClock, TellsWhetherADeadlineIsTheFirst) {
  EXPECT_TRUE(clock_.tick_by(at(2h)));
  EXPECT_FALSE(clock_.tick_by(at(3h)));
  EXPECT_TRUE(clock_.tick_by(at(90min)));
  EXPECT_EQ(clock_.until_next(), 30min);
}

TEST_F(TickClock, IsDueOnce) {
  clock_.tick_by(at(30min));
  EXPECT_TRUE(clock_.take_due());
  EXPECT_EQ(clock_.last_look(), at(1h));
  EXPECT_FALSE(clock_.take_due());
}

TEST_F(TickClock, KeepsWhatIsAskedForWhileItIsSeenTo) {
  clock_.tick_by(at(30min));
  ASSERT_TRUE(clock_.take_due());
  clock_.tick_by(at(61min));
  clock_.seen_to(at(2h));
  EXPECT_EQ(clock_.until_next(), 1min);
}

TEST_F(TickClock, LeavesAMomentWhereADeadlineStaysPast) {
  clock_.tick_by(at(30min));
  ASSERT_TRUE(clock_.take_due());
  clock_.seen_to(at(30min));
  EXPECT_EQ(clock_.until_next(), 1ms);
}

TEST_F(TickClock, IsDueInTheNextRoundBehindASleepThatEndedInTime) {
  clock_.tick_by(at(1h));
  time_.behind = 10ms;
  EXPECT_FALSE(clock_.take_due()) << "the cheap clock is behind";
  EXPECT_EQ(clock_.until_next(), 0ns);
  EXPECT_TRUE(clock_.take_due());
}

TEST_F(TickClock, AsksTheExactClockForNearDeadlinesOnly) {
  time_.behind = 10ms;
  EXPECT_EQ(clock_.deadline_after(100ms), at(1h + 100ms));
  EXPECT_EQ(clock_.deadline_after(1min), at(1h + 1min - 10ms));
}

}  // namespace
}  // namespace ucx::detail
