#include "connection/write_tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <system_error>
#include <vector>

#include "support/basics/effort.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

const std::error_code no_error;

TEST(WriteTracker, BeginsSettled) {
  write_tracker tracker;
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.unconfirmed(), 0U);
  EXPECT_EQ(tracker.first_unconfirmed(), std::nullopt);
  EXPECT_EQ(tracker.take_failure(), no_error);
}

TEST(WriteTracker, ConfirmedWriteIsForgotten) {
  write_tracker tracker;
  const std::uint64_t number = tracker.begin(100, 50);
  EXPECT_FALSE(tracker.settled());
  EXPECT_EQ(tracker.unconfirmed(), 50U);
  EXPECT_EQ(tracker.first_unconfirmed(), 100U);
  tracker.confirm(number, 50);
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.unconfirmed(), 0U);
  EXPECT_EQ(tracker.first_unconfirmed(), std::nullopt);
}

TEST(WriteTracker, PartsAreConfirmedInOrder) {
  write_tracker tracker;
  const std::uint64_t number = tracker.begin(1000, 10);
  for (std::uint64_t confirmed = 1; confirmed < 10; ++confirmed) {
    tracker.confirm(number, 1);
    EXPECT_EQ(tracker.first_unconfirmed(), 1000 + confirmed);
    EXPECT_EQ(tracker.unconfirmed(), 10 - confirmed);
    EXPECT_FALSE(tracker.settled());
  }
  tracker.confirm(number, 1);
  EXPECT_TRUE(tracker.settled());
}

TEST(WriteTracker, NamesTheFirstInTheOrderOfWrites) {
  write_tracker tracker;
  const std::uint64_t high = tracker.begin(900, 10);
  const std::uint64_t low = tracker.begin(10, 10);
  EXPECT_EQ(tracker.first_unconfirmed(), 900U);
  tracker.confirm(low, 10);
  EXPECT_EQ(tracker.first_unconfirmed(), 900U);
  EXPECT_EQ(tracker.unconfirmed(), 10U);
  tracker.confirm(high, 10);
  EXPECT_EQ(tracker.first_unconfirmed(), std::nullopt);
}

TEST(WriteTracker, CountsNoByteTwice) {
  write_tracker tracker;
  const std::uint64_t first = tracker.begin(0, 10);
  const std::uint64_t second = tracker.begin(10, 10);
  tracker.confirm(second, 1000);
  EXPECT_EQ(tracker.unconfirmed(), 10U);
  tracker.confirm(second, 10);
  EXPECT_EQ(tracker.unconfirmed(), 10U);
  tracker.confirm(first, 10);
  EXPECT_EQ(tracker.unconfirmed(), 0U);
}

TEST(WriteTracker, ReportsTheFirstFailureOnce) {
  write_tracker tracker;
  const std::uint64_t first = tracker.begin(0, 10);
  const std::uint64_t second = tracker.begin(10, 10);
  const std::uint64_t third = tracker.begin(20, 10);
  tracker.fail(second, errc::revoked);
  tracker.fail(third, errc::timed_out);
  EXPECT_FALSE(tracker.settled());
  tracker.confirm(first, 10);
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.take_failure(), errc::revoked);
  EXPECT_EQ(tracker.take_failure(), no_error);
}

TEST(WriteTracker, NamesThePlaceToWriteAgainFrom) {
  write_tracker tracker;
  const std::uint64_t first = tracker.begin(0, 10);
  const std::uint64_t second = tracker.begin(10, 10);
  const std::uint64_t third = tracker.begin(20, 10);
  tracker.confirm(first, 10);
  tracker.confirm(second, 4);
  tracker.fail(second, errc::revoked);
  tracker.confirm(third, 10);
  EXPECT_EQ(tracker.first_unconfirmed(), 14U);
  EXPECT_EQ(tracker.take_failure(), errc::revoked);
  EXPECT_EQ(tracker.first_unconfirmed(), 14U);
  EXPECT_EQ(tracker.unconfirmed(), 0U);
  tracker.begin(14, 16);
  EXPECT_EQ(tracker.first_unconfirmed(), 14U);
  EXPECT_EQ(tracker.unconfirmed(), 16U);
}

TEST(WriteTracker, PlaceToWriteAgainFromEndsWithTheNextWrite) {
  write_tracker tracker;
  tracker.fail(tracker.begin(7, 1), errc::canceled);
  EXPECT_EQ(tracker.take_failure(), errc::canceled);
  EXPECT_EQ(tracker.first_unconfirmed(), 7U);
  tracker.confirm(tracker.begin(7, 1), 1);
  EXPECT_EQ(tracker.first_unconfirmed(), std::nullopt);
}

TEST(WriteTracker, NumbersGoOnAfterAFailure) {
  write_tracker tracker;
  tracker.fail(tracker.begin(0, 1), errc::canceled);
  const std::uint64_t last = tracker.begin(1, 1);
  tracker.confirm(last, 1);
  EXPECT_EQ(tracker.take_failure(), errc::canceled);
  const std::uint64_t next = tracker.begin(2, 1);
  EXPECT_EQ(next, last + 1);
  tracker.confirm(next, 1);
  EXPECT_TRUE(tracker.settled());
}

TEST(WriteTracker, EndedWriteDoesNotChangeAnyMore) {
  write_tracker tracker;
  const std::uint64_t held = tracker.begin(0, 5);  // keeps the others on the books
  const std::uint64_t failed = tracker.begin(5, 5);
  const std::uint64_t confirmed = tracker.begin(10, 5);
  tracker.fail(failed, errc::revoked);
  tracker.confirm(confirmed, 5);
  tracker.fail(failed, errc::timed_out);
  tracker.confirm(failed, 5);
  tracker.fail(confirmed, errc::timed_out);
  EXPECT_EQ(tracker.unconfirmed(), 10U);
  tracker.confirm(held, 5);
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.take_failure(), errc::revoked);
}

TEST(WriteTracker, RemembersAsManyWritesAsThereAre) {
  write_tracker tracker;
  constexpr std::uint64_t count = 10000;
  std::vector<std::uint64_t> numbers;
  // A few ends first, so that the ring grows while it is wrapped around.
  for (int i = 0; i < 13; ++i) tracker.confirm(tracker.begin(0, 1), 1);
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(tracker.begin(i * 3, 3));
  EXPECT_EQ(tracker.unconfirmed(), 3 * count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(tracker.first_unconfirmed(), i * 3);
    tracker.confirm(numbers[i], 3);
  }
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.unconfirmed(), 0U);
}

TEST(WriteTracker, SettlesInWhateverOrderWritesEnd) {
  constexpr std::size_t count = 5;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  do {
    for (unsigned failures = 0; failures < (1U << count); ++failures) {
      write_tracker tracker;
      std::vector<std::uint64_t> numbers;
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(tracker.begin(i * 10, 10));
      std::error_code first_failure;  // in the order of the writes, not of their ends
      for (std::size_t i = count; i-- > 0;) {
        if ((failures >> i & 1U) != 0) first_failure = static_cast<errc>(i + 1);
      }
      for (const std::size_t index : order) {
        ASSERT_FALSE(tracker.settled());
        if ((failures >> index & 1U) == 0) {
          tracker.confirm(numbers[index], 10);
          continue;
        }
        tracker.fail(numbers[index], static_cast<errc>(index + 1));
      }
      ASSERT_TRUE(tracker.settled());
      std::optional<std::uint64_t> first;
      for (std::size_t i = count; i-- > 0;) {
        if ((failures >> i & 1U) != 0) first = i * 10;
      }
      ASSERT_EQ(tracker.first_unconfirmed(), first);
      ASSERT_EQ(tracker.take_failure(), first_failure);
      ASSERT_EQ(tracker.first_unconfirmed(), first);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(WriteTracker, AgreesWithAModelUnderRandomUse) {
  struct write {
    std::uint64_t number, offset, length, confirmed;
    bool open, failed;
  };
  std::mt19937_64 random(5);
  write_tracker tracker;
  std::vector<write> model;
  std::error_code failure;
  const auto is_open = [](const write& each) { return each.open; };
  for (int round = 0; round < test::effort(30000); ++round) {
    const auto open = std::count_if(model.begin(), model.end(), is_open);
    if (open == 0 && random() % 4 == 0) {
      ASSERT_EQ(tracker.take_failure(), std::exchange(failure, no_error));
      model.clear();
      if (tracker.first_unconfirmed()) tracker.confirm(tracker.begin(0, 1), 1);
    } else if (open == 0 || (open < 60 && random() % 2 == 0)) {
      const std::uint64_t offset = random() % 100000;
      const std::uint64_t length = 1 + random() % 100;
      model.push_back({tracker.begin(offset, length), offset, length, 0, true, false});
    } else {
      auto chosen = std::find_if(model.begin(), model.end(), is_open);
      for (auto skip = random() % 4; skip > 0; --skip) {
        const auto next = std::find_if(chosen + 1, model.end(), is_open);
        if (next != model.end()) chosen = next;
      }
      if (random() % 10 == 0) {
        tracker.fail(chosen->number, errc::revoked);
        if (!failure) failure = errc::revoked;
        chosen->open = false;
        chosen->failed = true;
      } else {
        const std::uint64_t bytes = 1 + random() % (chosen->length - chosen->confirmed);
        tracker.confirm(chosen->number, bytes);
        chosen->confirmed += bytes;
        chosen->open = chosen->confirmed < chosen->length;
      }
    }
    std::uint64_t unconfirmed = 0;
    std::optional<std::uint64_t> first;
    for (const write& each : model) {
      if (!each.open && !each.failed) continue;
      unconfirmed += each.length - each.confirmed;
      if (!first) first = each.offset + each.confirmed;
    }
    ASSERT_EQ(tracker.unconfirmed(), unconfirmed);
    ASSERT_EQ(tracker.first_unconfirmed(), first);
    ASSERT_EQ(tracker.settled(), std::none_of(model.begin(), model.end(), is_open));
  }
}

TEST(WriteTracker, FlushOfTheConnectionConfirmsWhatBeganBefore) {
  write_tracker tracker;
  tracker.begin_unconfirmable(100, 10);
  tracker.begin_unconfirmable(50, 10);
  EXPECT_TRUE(tracker.settled());
  EXPECT_TRUE(tracker.has_unconfirmable());
  EXPECT_EQ(tracker.first_unconfirmed(), 100U);
  EXPECT_EQ(tracker.unconfirmed(), 20U);
  tracker.flushed(tracker.unconfirmable_mark(), no_error);
  EXPECT_FALSE(tracker.has_unconfirmable());
  EXPECT_EQ(tracker.first_unconfirmed(), std::nullopt);
  EXPECT_EQ(tracker.unconfirmed(), 0U);
}

TEST(WriteTracker, ConnectionFlushLeavesLaterWrites) {
  write_tracker tracker;
  tracker.begin_unconfirmable(100, 10);
  const std::uint64_t mark = tracker.unconfirmable_mark();
  tracker.begin_unconfirmable(200, 10);
  tracker.flushed(mark, no_error);
  EXPECT_TRUE(tracker.has_unconfirmable());
  EXPECT_EQ(tracker.first_unconfirmed(), 100U);  // too early rather than too late
  tracker.flushed(tracker.unconfirmable_mark(), no_error);
  EXPECT_FALSE(tracker.has_unconfirmable());
}

TEST(WriteTracker, FailedFlushOfTheConnectionIsReportedOnce) {
  write_tracker tracker;
  tracker.begin_unconfirmable(100, 10);
  tracker.flushed(tracker.unconfirmable_mark(), errc::connection_reset);
  tracker.flushed(tracker.unconfirmable_mark(), errc::timed_out);
  EXPECT_EQ(tracker.take_failure(), errc::connection_reset);
  EXPECT_EQ(tracker.first_unconfirmed(), 100U);
  EXPECT_EQ(tracker.unconfirmed(), 0U);
  EXPECT_EQ(tracker.take_failure(), no_error);
}

TEST(WriteTracker, FlushBehindAFailureKeepsWhereItBegan) {
  write_tracker tracker;
  tracker.begin_unconfirmable(100, 10);
  tracker.flushed(tracker.unconfirmable_mark(), errc::timed_out);
  tracker.flushed(tracker.unconfirmable_mark(), no_error);
  EXPECT_EQ(tracker.take_failure(), errc::timed_out);
  EXPECT_EQ(tracker.first_unconfirmed(), 100U);
  EXPECT_EQ(tracker.unconfirmed(), 0U);
}

TEST(WriteTracker, FailureOfAWriteThatIsForgottenIsNobodyElses) {
  write_tracker tracker;
  const std::uint64_t done = tracker.begin(0, 10);
  tracker.confirm(done, 10);
  for (std::uint64_t i = 0; i < 16; ++i) tracker.begin(100 * i, 10);
  tracker.fail(done, errc::timed_out);
  tracker.confirm(done, 10);
  EXPECT_EQ(tracker.unconfirmed(), 160U);
  for (std::uint64_t i = 1; i <= 16; ++i) tracker.confirm(done + i, 10);
  EXPECT_TRUE(tracker.settled());
  EXPECT_EQ(tracker.take_failure(), no_error);
}

}  // namespace
}  // namespace ucx::detail
