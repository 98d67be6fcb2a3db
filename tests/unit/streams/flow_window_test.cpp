// What a window makes of the transfers that it is told of.
#include "engine/flow_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t one_block = 1000;
constexpr std::size_t bound = 1'000'000;

/// A path that delivers transfers in order: each takes its time on the wire, behind the one before.
class counted_path {
 public:
  counted_path(flow_window& window, std::chrono::nanoseconds delay, double bytes_per_second)
      : window_(window), delay_(delay), bytes_per_second_(bytes_per_second) {}

  /// Keeps the window full for so many transfers.
  void run(int transfers) {
    for (int i = 0; i < transfers; ++i) {
      while (sent_.empty() || in_flight_ + window_.piece() <= window_.target()) send();
      take();
    }
  }
  void slow_down(double factor) { bytes_per_second_ /= factor; }
  void lengthen(std::chrono::nanoseconds delay) { delay_ = delay; }
  std::size_t in_flight() const { return in_flight_; }
  flow_window::clock::time_point now() const { return now_; }

 private:
  struct transfer {
    flow_window::mark mark;
    std::size_t bytes;
    flow_window::clock::time_point arrives;
  };
  void send() {
    const std::size_t bytes = window_.piece();
    const auto free = std::max(wire_free_, now_ + delay_);
    wire_free_ = free + std::chrono::nanoseconds(static_cast<std::int64_t>(
                            1e9 * static_cast<double>(bytes) / bytes_per_second_));
    sent_.push_back({window_.started(now_, sent_.empty()), bytes, wire_free_});
    in_flight_ += bytes;
  }
  void take() {
    const transfer first = sent_.front();
    sent_.pop_front();
    now_ = std::max(now_, first.arrives);
    in_flight_ -= first.bytes;
    window_.arrived(first.bytes);
    window_.ended(first.mark, first.bytes, now_);
  }

  flow_window& window_;
  std::chrono::nanoseconds delay_;
  double bytes_per_second_;
  flow_window::clock::time_point now_{1h};
  flow_window::clock::time_point wire_free_;
  std::deque<transfer> sent_;
  std::size_t in_flight_ = 0;
};

TEST(FlowWindow, BeginsWithFourBlocks) {
  const flow_window window(bound, one_block);
  EXPECT_EQ(window.target(), 4 * one_block);
  EXPECT_EQ(window.piece(), one_block);
  EXPECT_EQ(window.most_pieces(), 4U);
  EXPECT_FALSE(window.measured());
  EXPECT_EQ(window.round_trip(), 0ns);
  EXPECT_EQ(window.bytes_per_second(), 0);
}

TEST(FlowWindow, GoesToTwiceBandwidthTimesDelayAndTwoBlocks) {
  flow_window window(bound, one_block);
  counted_path path(window, 1ms, 1e8);  // 100,000 bytes
  path.run(3000);
  EXPECT_NEAR(static_cast<double>(window.target()), 202'000, 1000);
  EXPECT_NEAR(std::chrono::duration<double>(window.round_trip()).count(), 1e-3, 1e-5);
  EXPECT_NEAR(window.bytes_per_second(), 1e8, 1e6);
}

TEST(FlowWindow, DoublesInEachRoundTripUntilThen) {
  flow_window window(bound, one_block);
  counted_path path(window, 10ms, 1e8);
  const auto begin = path.now();
  int round_trips = 0;
  while (window.target() < bound && round_trips < 20) {
    const std::size_t before = window.target();
    path.run(static_cast<int>(before / window.piece()));
    EXPECT_LE(window.target(), 3 * before);
    ++round_trips;
  }
  EXPECT_EQ(window.target(), bound);
  EXPECT_LE(path.now() - begin, 12 * 10ms);
}

TEST(FlowWindow, StaysAtFourBlocksWhereTheDelayIsNothing) {
  flow_window window(bound, one_block);
  counted_path path(window, 100ns, 1e8);
  path.run(10'000);
  EXPECT_EQ(window.target(), 4 * one_block);
}

TEST(FlowWindow, MakesTransfersShortWhereTheBoundIsNear) {
  flow_window window(bound, 100'000);
  counted_path path(window, 10ms, 1e8);
  path.run(1000);
  EXPECT_EQ(window.target(), bound);
  EXPECT_EQ(window.piece(), bound / 64);
  EXPECT_EQ(window.most_pieces(), 64U);
  EXPECT_LE(path.in_flight(), bound);
}

TEST(FlowWindow, ForgetsABandwidthAfterFourRounds) {
  flow_window window(bound, one_block);
  counted_path path(window, 1ms, 1e8);
  path.run(3000);
  path.slow_down(100);
  path.run(6 * 202);
  EXPECT_EQ(window.target(), 4 * one_block);
}

TEST(FlowWindow, MeasuresADelayAgainAloneAfterTenSeconds) {
  flow_window window(bound, one_block);
  counted_path path(window, 1ms, 1e6);
  path.run(1000);
  path.lengthen(20ms);
  const auto begin = path.now();
  while (window.target() > 0 && path.now() < begin + 20s) path.run(1);
  EXPECT_GE(path.now() - begin, 8s);
  EXPECT_LE(path.now() - begin, 12s);
  EXPECT_GE(window.size(), 4 * one_block);
  path.run(100);
  EXPECT_GT(window.target(), 30 * one_block);
  EXPECT_NEAR(std::chrono::duration<double>(window.round_trip()).count(), 20e-3, 1e-3);
}

TEST(FlowWindow, OfABoundBelowFourBlocksIsTheBound) {
  const flow_window window(3 * one_block, one_block);
  EXPECT_EQ(window.target(), 3 * one_block);
}

}  // namespace
}  // namespace ucx::detail
