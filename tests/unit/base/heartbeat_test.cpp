#include "base/heartbeat.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using verdict = heartbeat::verdict;

constexpr clock::time_point start = clock::time_point(100h);

/// Looks whenever a look is due, and remembers what came of it.
class watcher {
 public:
  explicit watcher(heartbeat& watched) : watched_(watched) {}

  /// Looks from `from` on until the peer counts as dead, or `until`.
  std::optional<clock::duration> dead_after(clock::time_point from, clock::time_point until) {
    verdict last = watched_.look(from);
    clock::time_point now = from;
    while (last != verdict::dead && now < until) {
      if (last == verdict::ask) ++asked;
      now = watched_.next_look();
      last = watched_.look(now);
    }
    if (last != verdict::dead) return std::nullopt;
    return now - from;
  }

  int asked = 0;

 private:
  heartbeat& watched_;
};

TEST(Heartbeat, FirstLookOnlyBeginsToWatch) {
  heartbeat watched(1s, 5s);
  EXPECT_EQ(watched.look(start), verdict::quiet);
  EXPECT_EQ(watched.next_look(), start + 125ms);
  EXPECT_EQ(watched.timeout(), 5s);
}

TEST(Heartbeat, AsksOnceAnInterval) {
  heartbeat watched(1s, 5s);
  watched.look(start);
  EXPECT_EQ(watched.look(start + 999ms), verdict::quiet);
  EXPECT_EQ(watched.look(start + 1s), verdict::ask);
  EXPECT_EQ(watched.look(start + 1500ms), verdict::quiet);
  EXPECT_EQ(watched.look(start + 2s), verdict::ask);
}

TEST(Heartbeat, SilentPeerIsDeadAfterTheTimeout) {
  for (const auto& [interval, timeout] : {std::pair{clock::duration(1s), clock::duration(5s)},
                                          std::pair{clock::duration(10ms), clock::duration(50ms)},
                                          std::pair{clock::duration(1s), clock::duration(1s)},
                                          std::pair{clock::duration(5s), clock::duration(1s)}}) {
    heartbeat watched(interval, timeout);
    watcher watching(watched);
    const auto dead = watching.dead_after(start, start + 1h);
    ASSERT_TRUE(dead);
    // What was seen first at `start` may be a step old.
    EXPECT_EQ(*dead, timeout - watched.step());
  }
}

TEST(Heartbeat, AsksBeforeItGivesUp) {
  heartbeat watched(1s, 5s);
  watcher watching(watched);
  ASSERT_TRUE(watching.dead_after(start, start + 1h));
  EXPECT_EQ(watching.asked, 4);
}

TEST(Heartbeat, EveryWordEndsTheSilence) {
  heartbeat watched(1s, 5s);
  clock::time_point now = start;
  EXPECT_EQ(watched.look(now), verdict::quiet);
  for (int round = 0; round < 50; ++round) {
    for (int look = 0; look < 9; ++look) {
      now += 500ms;
      ASSERT_NE(watched.look(now), verdict::dead);
    }
    watched.heard();
    now += 500ms;
    ASSERT_EQ(watched.look(now), verdict::quiet);
  }
}

TEST(Heartbeat, CountsOnlyTheTimeInWhichThisSideLooked) {
  heartbeat watched(1s, 5s);
  clock::time_point now = start;
  watched.look(now);
  // Four absences of a minute each are worth four intervals.
  for (int absence = 0; absence < 4; ++absence) {
    now += 1min;
    EXPECT_EQ(watched.look(now), verdict::ask) << absence;
  }
  now += 1min;
  EXPECT_EQ(watched.look(now), verdict::dead);
}

TEST(Heartbeat, WhatArrivedDuringAnAbsenceCounts) {
  heartbeat watched(1s, 5s);
  watched.look(start);
  watched.look(start + 4s);
  watched.heard();
  EXPECT_EQ(watched.look(start + 1h), verdict::quiet);
  watcher watching(watched);
  EXPECT_EQ(watching.dead_after(start + 1h, start + 2h),
            std::optional<clock::duration>(5s - watched.step()));
}

TEST(Heartbeat, SilenceBeginsAnewAfterARest) {
  heartbeat watched(1s, 5s);
  clock::time_point now = start;
  for (int look = 0; look < 10; ++look, now += 500ms) watched.look(now);
  watched.rest();
  watcher watching(watched);
  EXPECT_EQ(watching.dead_after(now, now + 1h),
            std::optional<clock::duration>(5s - watched.step()));
}

TEST(Heartbeat, NextLookIsBoundedByTheTimeoutToo) {
  heartbeat watched(10s, 100ms);
  watched.look(start);
  EXPECT_EQ(watched.next_look(), start + 12500us);
}

}  // namespace
}  // namespace ucx::detail
