// Messages over connections whose failure UCX does not detect, as shared memory has them: what the
// peer does not take stays in UCX's hands, and nobody waits for that.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/forgotten_by_ucx.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t size = std::size_t{4} << 20U;

simulated_pair_options with_short_fifo() {
  simulated_pair_options options = one_host();
  options.link.socket_buffer = 32U << 10U;  // the FIFO of a peer that takes nothing is soon full
  return options;
}

struct unwatched_region : served_region {
  unwatched_region() : served_region(size, with_short_fifo()) { connection.wait_connected(); }
  ~unwatched_region() {
    pair.owner_process.resume();
    pair.reader_process.resume();
  }
};

TEST(UnwatchedConnection, MovesBytesByMessage) {
  unwatched_region served;
  EXPECT_EQ(served.region.transfer_method(), transfer_method::message);
  std::vector<std::byte> bytes(size);
  served.region.read_at(0, bytes);
  EXPECT_TRUE(holds_pattern(bytes));
  const std::vector<std::byte> from = pattern(size, 1);
  served.region.write_at(0, from);
  served.region.flush();
  EXPECT_TRUE(holds_pattern(served.memory, 1));
}

TEST(UnwatchedConnection, WriteToAStoppedOwnerEndsInTime) {
  unwatched_region served;
  served.pair.owner_process.stop();
  auto from = std::make_unique<std::vector<std::byte>>(pattern(size, 1));
  const auto begin = served.network().now();
  std::error_code ec;
  served.region.write_at(0, *from, {.timeout = 100ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(served.network().now() - begin, 105ms);
  from.reset();  // a later use is seen by the sanitizer
  EXPECT_FALSE(served.region.status());
  served.pair.owner_process.resume();
  std::vector<std::byte> into(100);
  served.region.read_at(size - 100, into);
  EXPECT_TRUE(holds_pattern(into, 0, size - 100));
}

TEST(UnwatchedConnection, StuckWriteIsGivenUpInsideAHandler) {
  unwatched_region served;
  served.pair.owner_process.stop();
  const auto give_up = [&] {
    const std::vector<std::byte> from = pattern(size, 1);
    const auto begin = served.network().now();
    { const request write = served.region.start_write_at(0, from); }
    EXPECT_LT(served.network().now() - begin, 1ms);
    EXPECT_FALSE(served.region.status());
  };
  give_up();
  bool ran = false;
  served.pair.reader.post([&] {
    give_up();
    ran = true;
  });
  served.pair.reader.progress();
  EXPECT_TRUE(ran);
}

TEST(UnwatchedConnection, DeadOwnerEndsEverything) {
  const forgotten_by_ucx never_sent;  // the question of a read
  unwatched_region served;
  const std::vector<std::byte> from = pattern(size, 1);
  std::vector<std::byte> into(size);
  served.pair.owner_process.stop();
  request write = served.region.start_write_at(0, from);
  request read = served.region.start_read_at(0, into);
  const auto begin = served.network().now();
  std::error_code ec;
  write.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  read.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_LT(served.network().now() - begin, 6s);  // the heartbeat's
  served.region.flush({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST(UnwatchedConnection, LeavesAnOwnerThatTakesNothing) {
  unwatched_region served;
  served.pair.owner_process.stop();
  const std::vector<std::byte> from = pattern(size, 1);
  int given_up = 0;
  while (!served.region.status() && given_up < 100) {
    { const request write = served.region.start_write_at(0, from); }
    served.pair.reader.progress();
    ++given_up;
  }
  EXPECT_EQ(served.region.status(), errc::connection_reset);
  EXPECT_GT(given_up, 4);
  EXPECT_LT(given_up, 100);
}

TEST(UnwatchedConnection, CopiesThatWereTakenDoNotCount) {
  unwatched_region served;
  const std::vector<std::byte> from = pattern(size, 1);
  for (int i = 0; i < 100; ++i) {
    { const request write = served.region.start_write_at(0, from); }
    served.network().advance(1ms);
    ASSERT_FALSE(served.region.status()) << i;
  }
}

TEST(UnwatchedConnection, WithdrawingWaitsBoundedForAReader) {
  unwatched_region served;
  std::vector<std::byte> into(size);
  {
    const request read = served.region.start_read_at(0, into);
    served.pair.reader_process.stop();
    served.network().advance(10ms);
    const auto begin = served.network().now();
    served.exposed.close();
    EXPECT_GE(served.network().now() - begin, 5s);
    EXPECT_LT(served.network().now() - begin, 6s);
    fill_pattern(served.memory, 99);
    served.pair.reader_process.resume();
  }
}

TEST(UnwatchedConnection, EndingWorkerLetsGoOfTheRegion) {
  unwatched_region served;
  std::vector<std::byte> into(size);
  const request read = served.region.start_read_at(0, into, {.timeout = 1s});
  served.pair.reader_process.stop();
  served.network().advance(10ms);
  served.pair.owner_process.on_pump({});
  { const worker gone = std::move(served.pair.owner); }
  const auto begin = served.network().now();
  served.exposed.close();
  EXPECT_LT(served.network().now() - begin, 100ms);
}

}  // namespace
}  // namespace ucx::test
