// Hybrid logical clocks: what they return, and what they take from peers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "call/call_message.hpp"
#include "ucx/hybrid_clock.hpp"

namespace ucx {
namespace {

constexpr clock_stamp stamp(std::uint64_t milliseconds, std::uint64_t count) {
  return {(milliseconds << 16U) | count};
}

/// A clock whose wall clock the test turns.
class HybridClock : public ::testing::Test {
 protected:
  std::atomic<std::int64_t> wall_ = 5'000;
  hybrid_clock clock_{[this] {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(wall_.load()));
  }};
};

TEST_F(HybridClock, FollowsTheWallClockAndCountsWithinAMillisecond) {
  EXPECT_EQ(clock_.now(), stamp(5'000, 0));
  EXPECT_EQ(clock_.now(), stamp(5'000, 1));
  wall_ = 5'001;
  const clock_stamp made = clock_.now();
  EXPECT_EQ(made.since_epoch(), std::chrono::milliseconds(5'001));
  EXPECT_EQ(made.count(), 0U);
  EXPECT_TRUE(made);
  EXPECT_FALSE(clock_stamp());
}

TEST_F(HybridClock, NeverGoesBack) {
  const clock_stamp before = clock_.now();
  wall_ = 1;
  EXPECT_EQ(clock_.now(), stamp(5'000, 1));
  EXPECT_GT(clock_.now(), before);
}

// Kulkarni et al., "Logical Physical Clocks", figure 5, for each of its cases.
TEST_F(HybridClock, IsBehindWhatCameAndBehindItself) {
  EXPECT_EQ(clock_.merge(stamp(5'100, 7)), stamp(5'100, 8)) << "the peer is ahead";
  EXPECT_EQ(clock_.merge(stamp(5'050, 3)), stamp(5'100, 9)) << "this side is ahead";
  EXPECT_EQ(clock_.merge(stamp(5'100, 20)), stamp(5'100, 21)) << "both are at one moment";
  wall_ = 5'200;
  EXPECT_EQ(clock_.merge(stamp(5'100, 30)), stamp(5'200, 0)) << "the wall clock is ahead";
  EXPECT_EQ(clock_.merge(clock_stamp()), stamp(5'200, 1)) << "nothing is known of the peer";
  EXPECT_EQ(clock_.ahead(), 0U);
}

TEST_F(HybridClock, TakesNothingThatIsTooFarAhead) {
  EXPECT_EQ(clock_.merge(stamp(5'501, 0)), std::nullopt);
  EXPECT_EQ(clock_.merge(clock_stamp{~std::uint64_t{0}}), std::nullopt);
  EXPECT_EQ(clock_.ahead(), 2U);
  EXPECT_EQ(clock_.now(), stamp(5'000, 0)) << "it stayed as it was";
  EXPECT_EQ(clock_.merge(stamp(5'500, 0xffff)), std::nullopt) << "the next moment is beyond";
  EXPECT_EQ(clock_.merge(stamp(5'500, 0xfffe)), stamp(5'500, 0xffff)) << "500 ms are allowed";
  EXPECT_EQ(clock_.ahead(), 3U);
}

TEST_F(HybridClock, PassesOnWhatItFollowedWithinTheBound) {
  hybrid_clock ahead([this] {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(wall_ + 300));
  });
  hybrid_clock behind([this] {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(wall_ - 300));
  });
  const auto followed = clock_.merge(ahead.now());
  ASSERT_TRUE(followed);
  EXPECT_EQ(behind.merge(*followed), std::nullopt) << "600 ms are too much";
  EXPECT_EQ(behind.ahead(), 1U);
  wall_ += 101;
  EXPECT_GT(behind.merge(*followed), followed) << "behind has caught up";
}

TEST_F(HybridClock, CarriesAFullCountOn) {
  EXPECT_EQ(clock_.merge(stamp(5'000, 0xffff)), stamp(5'001, 0));
}

TEST_F(HybridClock, TakesAWallClockThatIsWrong) {
  wall_ = -1;
  EXPECT_EQ(clock_.now(), stamp(0, 1));
  wall_ = 9'000'000'000'000;
  EXPECT_EQ(clock_.now(), stamp(9'000'000'000'000, 0));
  EXPECT_TRUE(hybrid_clock(hybrid_clock::wall_clock()).now()) << "none is the system's";
}

TEST_F(HybridClock, TellsThreadsDifferentMoments) {
  constexpr std::size_t each = 2'000;
  std::array<std::vector<clock_stamp>, 4> told;
  std::vector<std::thread> threads;
  for (std::vector<clock_stamp>& mine : told) {
    threads.emplace_back([this, &mine] {
      for (std::size_t i = 0; i < each; ++i) {
        mine.push_back(i % 2 == 0 ? clock_.now() : *clock_.merge(mine.back()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<clock_stamp> all;
  for (const std::vector<clock_stamp>& mine : told) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "no moment twice";
  EXPECT_EQ(all.size(), told.size() * each);
}

TEST(SystemClock, IsWhatAClockFollows) {
  const auto wall = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
  };
  hybrid_clock clock;
  const auto before = wall();
  const clock_stamp told = clock.now();
  EXPECT_GE(told.since_epoch(), before);
  EXPECT_LE(told.since_epoch(), wall());
}

TEST(StampOfACall, StandsBehindTheOtherFieldsOfTheHead) {
  const clock_stamp sent = stamp(0x0102'0304'0506, 0x0708);
  const auto size_with_stamp = [sent](detail::call_message made, std::size_t without) {
    EXPECT_EQ(made.head_size, without);
    EXPECT_FALSE(detail::clock_of(made.head()));
    detail::add_clock(made, sent);
    EXPECT_EQ(detail::clock_of(made.head()), sent);
    EXPECT_EQ(std::to_integer<int>(made.head()[2]), static_cast<int>(made.head_size));
    EXPECT_EQ(std::to_integer<int>(made.head()[without]), 0x08) << "little-endian";
    EXPECT_FALSE(detail::clock_of(made.head().first(made.head_size - 1))) << "it is cut off";
    return made.head_size;
  };
  using detail::call_kind;
  EXPECT_EQ(size_with_stamp(detail::encode_request({.kind = call_kind::call, .name = "f"}), 48),
            56U);
  EXPECT_EQ(size_with_stamp(detail::encode_request({.kind = call_kind::bind, .name = "f"}), 48),
            56U);
  EXPECT_EQ(size_with_stamp(detail::encode_request({.kind = call_kind::bound}), 40), 48U);
  EXPECT_EQ(size_with_stamp(detail::encode_result(1, {}), 24), 32U);
}

TEST(StampOfACall, IsNotSoughtElsewhere) {
  EXPECT_FALSE(detail::clock_of({})) << "nothing";
  detail::call_message later = detail::encode_request({.name = "f"});
  detail::add_clock(later, stamp(1, 2));
  later.head_room[0] = std::byte{2};
  EXPECT_FALSE(detail::clock_of(later.head())) << "another version has another form";
  later.head_room[0] = std::byte{1};
  for (const int kind : {0, 5, 6, 255}) {
    later.head_room[1] = static_cast<std::byte>(kind);
    EXPECT_FALSE(detail::clock_of(later.head())) << kind;
  }
}

}  // namespace
}  // namespace ucx
