#include "ucx/request.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/handlers/fire.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A connected reader whose owner answers nothing until it is resumed.
struct stalled_region : served_region {
  explicit stalled_region(std::size_t size = 1000, const simulated_pair_options& options = {})
      : served_region(size, options) {
    connection.wait_connected();
    pair.owner_process.stop();
  }
  ~stalled_region() { pair.owner_process.resume(); }
};

TEST(Request, EmptyOneIsDoneAndSucceeded) {
  request empty;
  EXPECT_TRUE(empty.done());
  EXPECT_FALSE(empty.error());
  empty.wait();
  EXPECT_TRUE(empty.wait_for(0s));
  empty.cancel();
  EXPECT_FALSE(empty.rebind({}));
  int called = 0;
  empty.then([&](std::error_code ec) {
    ++called;
    EXPECT_FALSE(ec);
  });
  EXPECT_EQ(called, 1);
  std::move(empty).to_future().get();
}

TEST(Request, IsNotDoneUntilTheBytesAreThere) {
  stalled_region served;
  std::vector<std::byte> into(100, untouched);
  request read = served.region.start_read_at(0, into);
  EXPECT_FALSE(read.wait_for(100ms));
  EXPECT_FALSE(read.done());
  EXPECT_FALSE(read.error());
  served.pair.owner_process.resume();
  EXPECT_TRUE(read.wait_for(100ms));
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Request, WaitForReturnsAtItsLimit) {
  stalled_region served;
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  const auto begin = served.network().now();
  EXPECT_FALSE(read.wait_for(123ms));
  EXPECT_GE(served.network().now() - begin, 123ms);
  EXPECT_LT(served.network().now() - begin, 125ms);
  EXPECT_FALSE(read.wait_for(-123ms));
}

TEST(Request, TimesOutAtItsOwnDeadline) {
  stalled_region served;
  std::vector<std::byte> into(100, untouched);
  request read = served.region.start_read_at(0, into, {.timeout = 250ms});
  const auto begin = served.network().now();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_GE(served.network().now() - begin, 250ms);
  EXPECT_LT(served.network().now() - begin, 252ms);
  EXPECT_EQ(read.error(), errc::timed_out);
}

TEST(Request, DefaultOfTheWorkerIsItsDeadline) {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 70ms;
  stalled_region served(1000, options);
  std::vector<std::byte> into(100);
  const auto begin = served.network().now();
  std::error_code ec;
  served.region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(served.network().now() - begin, 72ms);
}

TEST(Request, TimedOutReadLeavesTheRegionUsableAndItsMemoryAlone) {
  stalled_region served;
  std::vector<std::byte> given_back(100, untouched);
  std::error_code ec;
  served.region.read_at(0, given_back, {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.pair.owner_process.resume();
  std::vector<std::byte> into(100);
  served.region.read_at(0, into);  // its answer comes behind the late one
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_TRUE(all_bytes_are(given_back, untouched));
  EXPECT_FALSE(served.region.status());
}

TEST(Request, TimedOutReadOfManyPiecesWritesNothingMore) {
  served_region served(100 * 4096, with_pieces_of(4096));
  served.connection.wait_connected();
  served.network().link().bytes_per_second = 1e6;
  std::vector<std::byte> into(100 * 4096, untouched);
  std::error_code ec;
  served.region.read_at(0, into, {.timeout = 100ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_NE(into.front(), untouched);
  const std::vector<std::byte> then = into;
  served.network().advance(1s);
  EXPECT_EQ(into, then);
  EXPECT_FALSE(served.region.status());
  served.network().link().bytes_per_second = 5e9;
  served.region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Request, TimedOutWriteThatWasHandedOverLeavesTheRegionUsable) {
  stalled_region served;
  const std::vector<std::byte> from = pattern(100, 1);
  request write = served.region.start_write_at(0, from, {.timeout = 50ms});
  // Small enough for UCX to have taken it: done, but not known to be visible.
  EXPECT_TRUE(write.wait_for(0s));
  EXPECT_FALSE(write.error());
  std::error_code ec;
  served.region.flush({.timeout = 200ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.pair.owner_process.resume();
  EXPECT_FALSE(served.region.status());
  std::vector<std::byte> into(100);
  served.region.read_at(0, into);
}

TEST(Request, StuckWriteKeepsItsMemoryUntilTheDrop) {
  simulated_pair_options options;
  options.reader_worker.heartbeat_timeout = 700ms;
  stalled_region served(std::size_t{16} << 20U, options);
  auto from = std::make_unique<std::vector<std::byte>>(pattern(std::size_t{16} << 20U, 1));
  request write = served.region.start_write_at(0, *from, {.timeout = 100ms});
  const auto begin = served.network().now();
  std::error_code ec;
  write.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  const auto took = served.network().now() - begin;
  // The peer is dead by then, and the write would have dropped the connection itself soon after.
  EXPECT_GE(took, 700ms - 700ms / 8);
  EXPECT_LT(took, 810ms);
  from.reset();  // UCX has let go of it: a later use is seen by the sanitizer
  EXPECT_TRUE(served.region.status());
  served.pair.owner_process.resume();
  served.network().advance(1s);
}

TEST(Request, RmaThatTimesOutTakesItsConnectionWithIt) {
  served_region served(1000, over_hardware());
  served.connection.wait_connected();
  ASSERT_EQ(served.region.transfer_method(), transfer_method::rma);
  served.network().faults().delay(call::get, 10s, 0);
  std::vector<std::byte> into(100, untouched);
  std::vector<std::byte> other(100, untouched);
  request patient = served.region.start_read_at(0, other);
  request read = served.region.start_read_at(0, into, {.timeout = 50ms});
  const auto begin = served.network().now();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(served.network().now() - begin, 60ms);
  patient.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(served.region.status(), errc::connection_reset);
  EXPECT_EQ(served.connection.status(), errc::connection_reset);
  EXPECT_EQ(served.region.start_read_at(0, into).error(), errc::connection_reset);
  served.network().advance(20s);
  EXPECT_TRUE(all_bytes_are(into, untouched));
  EXPECT_TRUE(all_bytes_are(other, untouched));
}

TEST(Request, HandlerOfADiscardedRequestRunsOnceAllTheSame) {
  served_region served(100);
  served.connection.wait_connected();
  std::vector<std::byte> into(100);
  std::vector<std::byte> other(100);
  std::vector<std::error_code> heard;
  const auto listen = [&](std::error_code ec) { heard.push_back(ec); };
  // Both answers come in one round, so that the second read has ended when the first one's handler
  // runs, while its own is still due.
  request first = served.region.start_read_at(0, into);
  std::optional<request> second(served.region.start_read_at(0, other));
  bool was_done = false;
  first.then([&](std::error_code) {
    was_done = second->done() && heard.empty();
    second.reset();
  });
  second->then(listen);
  served.network().advance(1ms);
  first.wait();
  EXPECT_TRUE(was_done);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_FALSE(heard.front());
  {
    request unfinished = served.region.start_read_at(0, into);
    unfinished.then(listen);
  }
  served.network().advance(1ms);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard.back(), errc::canceled);
}

TEST(Request, DiscardedOnesHandlerRunsByWorkersEnd) {
  int ran = 0;
  {
    served_region served(100);
    std::vector<std::byte> into(100);
    request read = served.region.start_read_at(0, into);
    read.then([&](std::error_code ec) {
      ++ran;
      EXPECT_EQ(ec, errc::canceled);
    });
    read = request();
  }
  EXPECT_EQ(ran, 1);
}

TEST(Request, DestroyingAReadGivesItUpAtOnce) {
  stalled_region served;
  std::vector<std::byte> into(100, untouched);
  const auto begin = served.network().now();
  { const request read = served.region.start_read_at(0, into); }
  EXPECT_EQ(served.network().now(), begin);
  served.pair.owner_process.resume();
  served.network().advance(100ms);
  EXPECT_TRUE(all_bytes_are(into, untouched));
  EXPECT_FALSE(served.region.status());
}

TEST(Request, DestroyingAStuckWriteReturnsWhenUcxHasLetGo) {
  simulated_pair_options options;
  options.reader_worker.heartbeat_timeout = 700ms;
  stalled_region served(std::size_t{16} << 20U, options);
  {
    const std::vector<std::byte> from = pattern(std::size_t{16} << 20U, 1);
    const auto begin = served.network().now();
    {
      request write = served.region.start_write_at(0, from);
      EXPECT_FALSE(write.wait_for(50ms)) << "the socket took it all";
    }
    EXPECT_LT(served.network().now() - begin, 850ms);
  }
  EXPECT_TRUE(served.region.status());
  served.pair.owner_process.resume();
  served.network().advance(1s);
}

TEST(Request, DestroyedInAHandlerDropsTheConnection) {
  stalled_region served(std::size_t{16} << 20U);
  bool ran = false;
  std::vector<std::byte> into(100);
  const request other = served.region.start_read_at(0, into);
  served.pair.reader.post([&] {
    const std::vector<std::byte> from = pattern(std::size_t{16} << 20U, 1);
    const auto begin = served.network().now();
    { const request write = served.region.start_write_at(0, from); }
    EXPECT_LT(served.network().now() - begin, 10ms);
    ran = true;
  });
  served.pair.reader.progress();
  EXPECT_TRUE(ran);
  // Nobody canceled what else went over the connection.
  EXPECT_EQ(served.region.status(), errc::connection_reset);
  EXPECT_EQ(other.error(), errc::connection_reset);
  served.pair.owner_process.resume();
  served.network().advance(1s);
}

TEST(Request, CancelingTwiceLeavesAHealthyConnection) {
  stalled_region served(std::size_t{16} << 20U);
  const std::vector<std::byte> from = pattern(std::size_t{16} << 20U, 1);
  request write = served.region.start_write_at(0, from);
  EXPECT_FALSE(write.wait_for(50ms)) << "the socket took it all";
  write.cancel();
  write.cancel();
  EXPECT_FALSE(write.wait_for(50ms));
  EXPECT_FALSE(served.region.status());
  served.pair.owner_process.resume();
  std::error_code ec;
  write.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_FALSE(served.region.status());
}

TEST(Request, DestroyedStuckWriteWaitsIfHealthy) {
  for (const bool times_out : {true, false}) {
    stalled_region served(std::size_t{16} << 20U);
    const auto begin = served.network().now();
    fake_process& waker = served.network().add_process("waker");
    waker.on_pump([&] {
      if (served.network().now() - begin > 200ms) served.pair.owner_process.resume();
    });
    const std::vector<std::byte> from = pattern(std::size_t{16} << 20U, 1);
    {
      request write = served.region.start_write_at(0, from, {.timeout = times_out ? 50ms : 10s});
      EXPECT_FALSE(write.wait_for(100ms));
      if (!times_out) write.cancel();
    }
    waker.on_pump({});
    EXPECT_GE(served.network().now() - begin, 200ms);
    EXPECT_LT(served.network().now() - begin, 1s);
    EXPECT_FALSE(served.region.status());
  }
}

TEST(Request, ConfirmedWriteSucceedsHoweverLateUcxIs) {
  served_region served(100000);
  served.connection.wait_connected();
  served.pair.reader_process.faults().delay(call::am_send, 200ms, 1);
  const std::vector<std::byte> from = pattern(100000, 1);
  request write = served.region.start_write_at(0, from, {.timeout = 50ms});
  const auto begin = served.network().now();
  write.wait();
  EXPECT_GE(served.network().now() - begin, 150ms);
  EXPECT_EQ(served.region.first_unconfirmed(), std::nullopt);
  served.region.flush();
  EXPECT_FALSE(served.region.status());
  EXPECT_TRUE(holds_pattern(served.memory, 1));
}

TEST(Request, SecondHandlerIsRefused) {
  stalled_region served;
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  int called = 0;
  read.then([&](std::error_code) { ++called; });
  try {
    read.then([](std::error_code) { FAIL(); });
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::invalid_argument);
  }
  EXPECT_THROW((void)std::move(read).to_future(), ucx::error);
  served.pair.owner_process.resume();
  read.wait();
  EXPECT_EQ(called, 1);
  EXPECT_THROW(read.then([](std::error_code) { FAIL(); }), ucx::error);
}

TEST(Request, EmptyHandlerIsNone) {
  served_region served(100);
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  read.then(std::function<void(std::error_code)>());
  read.wait();
  request done = served.region.start_read_at(0, into);
  done.wait();
  done.then({});
}

TEST(Request, HasNoStreamWaitWhereThereIsNoCudaDriver) {
  stalled_region served;
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  void* const legacy_stream = reinterpret_cast<void*>(1);
  std::error_code ec;
  read.enqueue_wait(legacy_stream, ec);
  EXPECT_EQ(ec, errc::not_supported);
  read.enqueue_wait(nullptr, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  try {
    read.enqueue_wait(nullptr);
    ADD_FAILURE() << "waited on no stream";
  } catch (const ucx::error& failure) {
    EXPECT_NE(std::string(failure.what()).find("read of 100 bytes"), std::string::npos);
  }
  EXPECT_FALSE(read.done());
}

TEST(Request, CancelEndsAReadNow) {
  stalled_region served;
  std::vector<std::byte> into(100, untouched);
  request read = served.region.start_read_at(0, into);
  int called = 0;
  read.then([&](std::error_code ec) {
    ++called;
    EXPECT_EQ(ec, errc::canceled);
  });
  read.cancel();
  EXPECT_TRUE(read.done());
  EXPECT_EQ(called, 1);
  read.cancel();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(called, 1);
  served.pair.owner_process.resume();
  served.network().advance(10ms);
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

TEST(Request, CancelAfterTheEndChangesNothing) {
  served_region served(100);
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  read.wait();
  read.cancel();
  EXPECT_FALSE(read.error());
}

TEST(Request, HandlerRunsOnceAlsoWhenItCameLate) {
  served_region served(100);
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  int called = 0;
  read.then([&](std::error_code) { ++called; });
  read.wait();
  EXPECT_EQ(called, 1);
  request done = served.region.start_read_at(0, into);
  done.wait();
  done.then([&](std::error_code ec) {
    EXPECT_FALSE(ec);
    ++called;
  });
  EXPECT_EQ(called, 2);
}

TEST(Request, HandlerMayStartTheNextOperation) {
  served_region served(1000);
  std::vector<std::byte> into(10);
  std::vector<request> reads(100);
  std::size_t next = 0;
  std::function<void()> start = [&] {
    const std::size_t index = next++;
    reads[index] = served.region.start_read_at(index * 10, into);
    reads[index].then([&, index](std::error_code ec) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(holds_pattern(into, 0, index * 10));
      if (next < reads.size()) start();
    });
  };
  start();
  EXPECT_TRUE(served.network().run_until([&] { return reads.back().done(); }));
  served.network().advance(10ms);  // the last handler runs in the round after
}

TEST(Request, WaitingInsideAHandlerIsAnErrorNotADeadlock) {
  served_region served(100);
  std::vector<std::byte> into(100);
  std::vector<std::byte> other(100);
  request read = served.region.start_read_at(0, into);
  request second;
  bool ran = false;
  read.then([&](std::error_code) {
    second = served.region.start_read_at(0, other);
    std::error_code ec;
    second.wait(ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    EXPECT_THROW((void)second.wait_for(1s), ucx::error);
    EXPECT_THROW(second.wait(), ucx::error);
    ran = true;
  });
  read.wait();
  EXPECT_TRUE(ran);
  second.wait();
}

TEST(Request, RebindGivesAReadOtherMemory) {
  stalled_region served;
  std::vector<std::byte> first(100, untouched);
  std::vector<std::byte> second(100);
  std::vector<std::byte> shorter(99);
  request read = served.region.start_read_at(3, first);
  EXPECT_FALSE(read.rebind(shorter));
  EXPECT_TRUE(read.rebind(second));
  served.pair.owner_process.resume();
  read.wait();
  EXPECT_TRUE(all_bytes_are(first, untouched));
  EXPECT_TRUE(holds_pattern(second, 0, 3));
  EXPECT_FALSE(read.rebind(first));
  request write = served.region.start_write_at(0, second);
  EXPECT_FALSE(write.rebind(first));
  write.wait();
}

TEST(Request, RebindIsRefusedOnceBytesArrived) {
  served_region served(100 * 4096, with_pieces_of(4096));
  served.connection.wait_connected();
  served.network().link().bytes_per_second = 1e6;
  std::vector<std::byte> into(100 * 4096, untouched);
  std::vector<std::byte> other(100 * 4096, untouched);
  request read = served.region.start_read_at(0, into);
  ASSERT_TRUE(served.network().run_until([&] { return into.front() != untouched; }));
  EXPECT_FALSE(read.rebind(other));
  served.network().link().bytes_per_second = 5e9;
  read.wait();
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_TRUE(all_bytes_are(other, untouched));
}

TEST(Request, FutureTellsTheOutcome) {
  served_region served(100);
  std::vector<std::byte> into(100);
  std::future<message_info> good = served.region.start_read_at(0, into).to_future();
  ASSERT_TRUE(
      served.network().run_until([&] { return good.wait_for(0s) == std::future_status::ready; }));
  good.get();
  EXPECT_TRUE(holds_pattern(into));
  std::future<message_info> bad = served.region.start_read_at(50, into).to_future();
  try {
    bad.get();
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::out_of_range);
  }
}

TEST(Request, FutureOfALostConnectionThrows) {
  stalled_region served;
  std::vector<std::byte> into(100);
  std::future<message_info> lost = served.region.start_read_at(0, into).to_future();
  served.pair.owner_process.kill();
  ASSERT_TRUE(
      served.network().run_until([&] { return lost.wait_for(0s) == std::future_status::ready; }));
  EXPECT_THROW(lost.get(), ucx::error);
}

fire read_twice(remote_region& region, std::span<std::byte> first, std::span<std::byte> second,
                std::optional<std::error_code>& outcome) {
  try {
    co_await region.start_read_at(0, first);
    co_await region.start_read_at(first.size(), second);
    outcome = std::error_code();
  } catch (const ucx::error& failed) {
    outcome = failed.code();
  }
}

TEST(Request, CoroutineResumesWithTheBytes) {
  served_region served(100);
  std::vector<std::byte> first(60);
  std::vector<std::byte> second(40);
  std::optional<std::error_code> outcome;
  read_twice(served.region, first, second, outcome);
  EXPECT_FALSE(outcome);
  ASSERT_TRUE(served.network().run_until([&] { return outcome.has_value(); }));
  EXPECT_FALSE(*outcome);
  EXPECT_TRUE(holds_pattern(first));
  EXPECT_TRUE(holds_pattern(second, 0, 60));
}

TEST(Request, CoroutineGetsTheError) {
  served_region served(100);
  std::vector<std::byte> first(60);
  std::vector<std::byte> second(41);
  std::optional<std::error_code> outcome;
  read_twice(served.region, first, second, outcome);
  ASSERT_TRUE(served.network().run_until([&] { return outcome.has_value(); }));
  EXPECT_EQ(*outcome, errc::out_of_range);
}

TEST(Request, MoveAssignmentGivesUpWhatWasThere) {
  stalled_region served;
  std::vector<std::byte> into(100, untouched);
  request read = served.region.start_read_at(0, into);
  std::vector<std::byte> other(100);
  read = served.region.start_read_at(0, other);
  served.pair.owner_process.resume();
  read.wait();
  EXPECT_TRUE(all_bytes_are(into, untouched));
  EXPECT_TRUE(holds_pattern(other));
}

TEST(Request, ErrorTextNamesOperationPeerAndCause) {
  stalled_region served;
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(7, into);
  served.pair.owner_process.kill();
  try {
    read.wait();
    FAIL();
  } catch (const ucx::error& failed) {
    const std::string text = failed.what();
    EXPECT_EQ(failed.code(), errc::connection_reset);
    EXPECT_NE(text.find("read of 100 bytes at offset 7 of region 1"), std::string::npos) << text;
    EXPECT_NE(text.find("session"), std::string::npos) << text;
    EXPECT_NE(text.find("UCX: "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ucx::test
