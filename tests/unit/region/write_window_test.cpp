// Who may send how much of the writes to a region of which only so many may be unconfirmed.
#include "region/remote/write_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <list>
#include <utility>
#include <vector>

namespace ucx::detail {
namespace {

/// Sends pieces of one size, as far as it may.
class writer final : public write_window::waiter {
 public:
  writer(write_window& window, std::uint64_t piece, unsigned pieces)
      : window_(window), piece_(piece), left_(pieces) {}
  void send_more() override {
    for (; left_ > 0 && window_.may_send(*this, piece_); --left_) ++sent;
  }
  unsigned sent = 0;

 private:
  write_window& window_;
  const std::uint64_t piece_;
  unsigned left_;
};

TEST(WriteWindow, LetsEverythingGoWhereItHasNoSize) {
  write_window window(0);
  writer eager(window, std::numeric_limits<std::uint64_t>::max() / 2, 100);
  eager.send_more();
  EXPECT_EQ(eager.sent, 100U);
}

TEST(WriteWindow, IsFilledAndNoMore) {
  write_window window(10);
  writer eager(window, 3, 100);
  eager.send_more();
  EXPECT_EQ(eager.sent, 3U);
  window.freed(2);
  EXPECT_EQ(eager.sent, 4U);
  window.freed(12);
  EXPECT_EQ(eager.sent, 7U);
}

TEST(WriteWindow, LetsOnePieceGoHoweverLong) {
  write_window window(10);
  writer huge(window, 1000, 2);
  huge.send_more();
  EXPECT_EQ(huge.sent, 1U);
  window.freed(999);
  EXPECT_EQ(huge.sent, 1U);
  window.freed(1);
  EXPECT_EQ(huge.sent, 2U);
}

TEST(WriteWindow, LetsNobodyOvertake) {
  write_window window(10);
  writer first(window, 8, 2);
  writer second(window, 1, 1);
  first.send_more();
  second.send_more();  // there would be room
  EXPECT_EQ(first.sent, 1U);
  EXPECT_EQ(second.sent, 0U);
  window.freed(8);
  EXPECT_EQ(first.sent, 2U);
  EXPECT_EQ(second.sent, 1U);
}

TEST(WriteWindow, ForgetsWhoStopsWaiting) {
  write_window window(10);
  writer first(window, 10, 2);
  writer second(window, 10, 1);
  first.send_more();
  second.send_more();
  window.stops_waiting(first);
  window.freed(10);
  EXPECT_EQ(first.sent, 1U);
  EXPECT_EQ(second.sent, 1U);
}

TEST(WriteWindow, CountsAShortPieceAsAShareOfTheWhole) {
  EXPECT_EQ(write_window(std::uint64_t{1} << 20U).room_for(1), 256U);
  EXPECT_EQ(write_window(std::uint64_t{1} << 20U).room_for(1000), 1000U);
  EXPECT_EQ(write_window(0).room_for(1), 1U);
}

/// UCX does not take its first piece: it goes in smaller ones.
class refused_writer final : public write_window::waiter {
 public:
  explicit refused_writer(write_window& window) : window_(window) {}
  void send_more() override {
    deepest_ = std::max(deepest_, ++depth_);
    if (!std::exchange(was_refused_, true)) {
      if (window_.may_send(*this, 8)) window_.freed(8);
    }
    for (; left_ > 0 && window_.may_send(*this, 1); --left_) ++sent;
    --depth_;
  }
  static int deepest() { return std::exchange(deepest_, 0); }
  unsigned sent = 0;

 private:
  static inline int depth_ = 0;
  static inline int deepest_ = 0;
  write_window& window_;
  bool was_refused_ = false;
  unsigned left_ = 2;
};

TEST(WriteWindow, CallsNobodyInsideOfAnothersCall) {
  write_window window(10);
  writer first(window, 10, 1);
  first.send_more();
  std::list<refused_writer> waiting;
  for (int i = 0; i < 100; ++i) {
    waiting.emplace_back(window);
    EXPECT_FALSE(window.may_send(waiting.back(), 8));
  }
  refused_writer::deepest();
  for (int i = 0; i < 100; ++i) window.freed(10);
  EXPECT_EQ(refused_writer::deepest(), 1);
  for (const refused_writer& each : waiting) EXPECT_EQ(each.sent, 2U);
}

}  // namespace
}  // namespace ucx::detail
