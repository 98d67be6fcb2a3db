// Who may send how much of the writes to a region of which only so many may be unconfirmed.
#include "region/remote/write_window.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
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

}  // namespace
}  // namespace ucx::detail
