// What flush() covers, and what is known of writes that failed.
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class Flush : public testing::TestWithParam<pair_options> {
 protected:
  std::vector<std::byte> bytes(std::size_t size = 100) const {
    return std::vector<std::byte>(size, std::byte{0xAA});
  }

  connected_pair pair_{GetParam()};
  memory_region owned_ = pair_.allocate(1U << 20U);
  remote_region region_ = pair_.open(owned_);
};

TEST_P(Flush, CostsNothingWhenNothingWasWritten) {
  pair_.pause_owner();
  EXPECT_TRUE(region_.start_flush().done());
  region_.flush();
  pair_.resume_owner();
}

TEST_P(Flush, WaitsForWritesThatTheOwnerHasNotConfirmed) {
  pair_.pause_owner();
  region_.write_at(1000, bytes());
  EXPECT_EQ(region_.first_unconfirmed(), 1000U);
  request flush = region_.start_flush();
  EXPECT_FALSE(flush.wait_for(20ms));
  EXPECT_TRUE(all_bytes_are(owned_.bytes(), std::byte{0})) << "the owner has done nothing yet";
  pair_.resume_owner();
  flush.wait();
  EXPECT_EQ(region_.first_unconfirmed(), std::nullopt);
  EXPECT_TRUE(all_bytes_are(owned_.bytes().subspan(1000, 100), std::byte{0xAA}));
}

TEST_P(Flush, TimesOutWhileTheWritesGoOn) {
  pair_.pause_owner();
  region_.write_at(0, bytes());
  std::error_code ec;
  region_.flush({.timeout = 30ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(region_.first_unconfirmed(), 0U);
  pair_.resume_owner();
  region_.flush();
  EXPECT_TRUE(all_bytes_are(owned_.bytes().first(100), std::byte{0xAA}));
}

TEST_P(Flush, DoesNotWaitForWritesThatBeganLater) {
  constexpr std::size_t size = 128U << 10U;
  const std::vector<std::byte> from = bytes(size);
  pair_.pause_owner();
  region_.write_at(0, bytes());
  request flush = region_.start_flush();
  pair_.resume_owner();
  // Later writes without end, several of them unanswered at any time.
  std::deque<request> later;
  const auto until = std::chrono::steady_clock::now() + 60s;
  for (std::size_t i = 0; !flush.done() && std::chrono::steady_clock::now() < until; ++i) {
    later.push_back(region_.start_write_at(size * (i % 7 + 1), from));
    if (later.size() < 16) continue;
    later.front().wait();
    later.pop_front();
  }
  EXPECT_TRUE(flush.done());
  flush.wait();
  for (request& write : later) write.wait();
  region_.flush();
}

TEST_P(Flush, CoversTheWritesOfItsOwnHandleOnly) {
  memory_region readable = pair_.allocate(1000, access::read);
  remote_descriptor forged = readable.descriptor();
  forged.granted = access::read_write;
  remote_region good(*pair_.connection, forged, answered_by_the_owner());
  remote_region bad = good.share();
  bad.write_at(0, bytes());
  EXPECT_EQ(good.first_unconfirmed(), std::nullopt);
  good.flush();
  std::error_code ec;
  bad.flush({}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  good.flush();
}

TEST_P(Flush, ReportsAFailureOnceAndStartsAfresh) {
  memory_region readable = pair_.allocate(1000, access::read);
  remote_descriptor forged = readable.descriptor();
  forged.granted = access::read_write;
  remote_region region(*pair_.connection, forged, answered_by_the_owner());
  region.write_at(40, bytes());
  region.write_at(140, bytes());
  std::error_code ec;
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_EQ(region.first_unconfirmed(), 40U) << "where to write again from";
  region.flush();
  EXPECT_EQ(region.first_unconfirmed(), 40U) << "until the next write";
}

TEST_P(Flush, TellsWhichWriteWasTheFirstToFail) {
  memory_region owned = pair_.allocate(1000);
  remote_descriptor forged = owned.descriptor();
  forged.size = 5000;
  remote_region region(*pair_.connection, forged, answered_by_the_owner());
  region.write_at(300, bytes());
  region.write_at(100, bytes());
  region.write_at(2000, bytes());  // outside of what there is
  region.write_at(500, bytes());
  std::error_code ec;
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  EXPECT_EQ(region.first_unconfirmed(), 2000U);
  region.write_at(700, bytes());
  region.flush();
  EXPECT_EQ(region.first_unconfirmed(), std::nullopt);
  for (const std::size_t offset : {300U, 100U, 500U, 700U}) {
    EXPECT_TRUE(all_bytes_are(owned.bytes().subspan(offset, 100), std::byte{0xAA})) << offset;
  }
}

TEST_P(Flush, SeveralAtATimeAllEnd) {
  pair_.pause_owner();
  region_.write_at(0, bytes());
  std::vector<request> flushes;
  for (int i = 0; i < 5; ++i) flushes.push_back(region_.start_flush());
  flushes[1].cancel();
  std::error_code ec;
  flushes[1].wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  flushes[2] = request();
  pair_.resume_owner();
  flushes[0].wait();
  flushes[3].wait();
  flushes[4].wait();
}

TEST_P(Flush, OfAConnectionCoversEveryRegion) {
  memory_region other_owned = pair_.allocate(1000);
  remote_region other = pair_.open(other_owned);
  pair_.pause_owner();
  region_.write_at(0, bytes());
  other.write_at(0, bytes());
  request flush = pair_.connection->start_flush();
  pair_.resume_owner();
  flush.wait();
  EXPECT_TRUE(all_bytes_are(owned_.bytes().first(100), std::byte{0xAA}));
  EXPECT_TRUE(all_bytes_are(other_owned.bytes().first(100), std::byte{0xAA}));
}

TEST_P(Flush, FailsWithTheConnection) {
  pair_.pause_owner();
  region_.write_at(0, bytes());
  request flush = region_.start_flush();
  pair_.connection->close(close_mode::abort);
  std::error_code ec;
  flush.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(region_.first_unconfirmed(), 0U);
  region_.flush({}, ec);
  EXPECT_TRUE(!ec || ec == errc::closed) << ec;
  pair_.resume_owner();
}

TEST_P(Flush, FailsWithTheRegion) {
  pair_.pause_owner();
  region_.write_at(0, bytes());
  request flush = region_.start_flush();
  std::vector<std::byte> into(100);
  request read = region_.start_read_at(0, into);
  remote_region shared = region_.share();
  shared.close();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  flush.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(region_.status(), errc::closed);
  region_.write_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  region_.close();
  pair_.resume_owner();
  EXPECT_FALSE(pair_.connection->status());
  remote_region again = pair_.open(owned_);
  again.read_at(0, into);
}

INSTANTIATE_TEST_SUITE_P(Messages, Flush, testing::ValuesIn(message_pairs()), name_of_pair);

}  // namespace
}  // namespace ucx::test
