// One operation in flight: how it is waited for, given up, redirected and forgotten.
#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <future>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/handlers/fire.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// The owner answers nothing while it is paused, so that operations stay in flight.
class Request : public testing::TestWithParam<pair_options> {
 protected:
  static pair_options impatient(pair_options options, std::chrono::nanoseconds silence) {
    options.reader_defaults.heartbeat_interval = 100ms;
    options.reader_defaults.heartbeat_timeout = silence;
    options.reader_defaults.close_timeout = 100ms;
    return options;
  }
  std::vector<std::byte> blank(std::size_t size = 100) const {
    return std::vector<std::byte>(size, untouched);
  }
  /// Returns whether the owner serves the region as if nothing had happened.
  bool works(remote_region& region) {
    std::vector<std::byte> into(5000);
    region.read_at(4321, into);
    return holds_pattern(into, 0, 4321);
  }

  /// An owner that is silent for so long is dead.
  explicit Request(std::chrono::nanoseconds silence = patience(20s))
      : pair_(impatient(GetParam(), silence)) {
    fill_pattern(owned_.bytes());
  }

  connected_pair pair_;
  memory_region owned_ = pair_.allocate(1U << 20U);
  remote_region region_ = pair_.open(owned_);
};

/// Of a write that is under way UCX lets go with the connection only, which the silence ends.
class StuckWrite : public Request {
 protected:
  StuckWrite() : Request(patience(1s)) {}
};

TEST_P(Request, IsEmptyAndDoneByDefault) {
  request nothing;
  EXPECT_TRUE(nothing.done());
  EXPECT_FALSE(nothing.error());
  nothing.wait();
  nothing.cancel();
  EXPECT_TRUE(nothing.wait_for(1h));
  EXPECT_FALSE(nothing.rebind({}));
  bool called = false;
  nothing.then([&](std::error_code ec) { called = !ec; });
  EXPECT_TRUE(called);
  std::move(nothing).to_future().get();
}

TEST_P(Request, IsInFlightUntilTheOwnerAnswers) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  request read = region_.start_read_at(7, into);
  EXPECT_FALSE(read.wait_for(30ms));
  EXPECT_FALSE(read.done());
  EXPECT_FALSE(read.error());
  EXPECT_TRUE(all_bytes_are(into, untouched));
  pair_.resume_owner();
  EXPECT_TRUE(read.wait_for(patience(20s)));
  EXPECT_TRUE(read.done());
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 0, 7));
}

TEST_P(Request, IsWaitedForUpToALimit) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  request read = region_.start_read_at(0, into);
  const clock::time_point until = clock::now() + 20ms;
  EXPECT_FALSE(read.wait_for(20ms));
  EXPECT_GE(clock::now(), until);
  EXPECT_FALSE(read.wait_for(-1h));
  pair_.resume_owner();
  EXPECT_TRUE(read.wait_for(patience(20s)));
}

TEST_P(Request, TimesOutAtItsDeadlineAndLeavesTheRegionUsable) {
  std::vector<std::byte> into = blank(100'000);
  pair_.pause_owner();
  const clock::time_point begin = clock::now();
  std::error_code ec;
  region_.read_at(0, into, {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(ec, std::errc::timed_out);
  EXPECT_GE(clock::now() - begin, 50ms);
  EXPECT_LT(clock::now() - begin, patience(15s))
      << "the heartbeat's time-out, or the usual one, ended it";
  pair_.resume_owner();
  EXPECT_TRUE(works(region_)) << "the late answer comes first, and finds nobody";
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

TEST_P(Request, SaysWhatTimedOut) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  try {
    region_.read_at(4096, into, {.timeout = 20ms});
    ADD_FAILURE() << "read from an owner that was paused";
  } catch (const std::ios_base::failure& failed) {
    EXPECT_EQ(failed.code(), errc::timed_out);
    EXPECT_THAT(failed.what(), testing::HasSubstr("read of 100 bytes at offset 4096"));
    EXPECT_THAT(failed.what(), testing::HasSubstr(region_.description()));
  }
  pair_.resume_owner();
}

TEST_P(Request, CallsItsHandlerOnce) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  std::atomic<int> calls{0};
  std::atomic<bool> good{false};
  request read = region_.start_read_at(1, into);
  read.then([&](std::error_code ec) {
    good = !ec && read.done();
    ++calls;
  });
  EXPECT_EQ(calls, 0);
  pair_.resume_owner();
  EXPECT_TRUE(pair_.drive_until([&] { return calls > 0; }));
  EXPECT_TRUE(good);
  EXPECT_TRUE(works(region_));
  EXPECT_EQ(calls, 1);
}

TEST_P(Request, CallsAHandlerThatComesLateAtOnce) {
  std::vector<std::byte> into = blank();
  request read = region_.start_read_at(1, into);
  read.wait();
  bool called = false;
  read.then([&](std::error_code ec) { called = !ec; });
  EXPECT_TRUE(called);
}

TEST_P(Request, LetsAHandlerStartTheNextOperation) {
  constexpr int links = 500;
  std::vector<std::byte> into = blank(64);
  std::atomic<int> ended{0};
  std::vector<request> chain(links);
  std::function<void()> next = [&] {
    const auto i = static_cast<std::size_t>(ended.load());
    chain[i] = region_.start_read_at(i * 64, into);
    chain[i].then([&, i](std::error_code ec) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(holds_pattern(into, 0, i * 64));
      if (++ended < links) next();
    });
  };
  next();
  EXPECT_TRUE(pair_.drive_until([&] { return ended == links; }));
}

TEST_P(Request, RefusesToWaitInsideAHandler) {
  std::vector<std::byte> into = blank();
  std::vector<std::byte> other_into = blank();
  pair_.pause_owner();
  request read = region_.start_read_at(0, into);
  request other = region_.start_read_at(0, other_into);
  std::atomic<bool> called{false};
  read.cancel();
  // Nothing but the cancellation below ends it: a handler that comes late would run outside of any.
  request third = region_.start_read_at(0, into);
  third.then([&](std::error_code) {
    std::error_code ec;
    other.wait(ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur);
    EXPECT_THROW(other.wait(), ucx::error);
    EXPECT_THROW(static_cast<void>(other.wait_for(1s)), ucx::error);
    region_.read_at(0, other_into, {}, ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    pair_.connection->close(close_mode::flush, ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    called = true;
  });
  third.cancel();
  EXPECT_TRUE(pair_.drive_until([&] { return called.load(); }));
  pair_.resume_owner();
  other.wait();
  EXPECT_TRUE(works(region_));
}

TEST_P(Request, CancelsAReadThatIsNotAnswered) {
  std::vector<std::byte> into = blank(300'000);
  pair_.pause_owner();
  request read = region_.start_read_at(0, into);
  read.cancel();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(ec, std::errc::operation_canceled);
  read.cancel();
  pair_.resume_owner();
  EXPECT_TRUE(works(region_));
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

TEST_P(Request, TellsTheHandlerOfACancellation) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  std::atomic<int> outcome{0};
  request read = region_.start_read_at(0, into);
  read.then([&](std::error_code ec) { outcome = ec.value(); });
  read.cancel();
  EXPECT_TRUE(pair_.drive_until([&] { return outcome != 0; }));
  EXPECT_EQ(outcome, static_cast<int>(errc::canceled));
  pair_.resume_owner();
}

TEST_P(Request, FillsTheMemoryItWasReboundTo) {
  std::vector<std::byte> first = blank();
  std::vector<std::byte> second = blank();
  std::vector<std::byte> shorter = blank(99);
  pair_.pause_owner();
  request read = region_.start_read_at(50, first);
  EXPECT_FALSE(read.rebind(shorter));
  EXPECT_TRUE(read.rebind(second));
  std::fill(first.begin(), first.end(), untouched);
  pair_.resume_owner();
  read.wait();
  EXPECT_TRUE(all_bytes_are(first, untouched));
  EXPECT_TRUE(holds_pattern(second, 0, 50));
  EXPECT_FALSE(read.rebind(first)) << "it has ended";
}

TEST_P(Request, RebindsReadsOnly) {
  const std::vector<std::byte> from = pattern(64 << 20U, 1);
  std::vector<std::byte> other = blank(64 << 20U);
  memory_region large = pair_.allocate(from.size());
  remote_region region = pair_.open(large);
  pair_.pause_owner();
  request write = region.start_write_at(0, from);
  EXPECT_FALSE(write.done()) << "64 MiB fit the sockets' buffers";
  EXPECT_FALSE(write.rebind(other));
  pair_.resume_owner();
  write.wait();
  region.flush();
  EXPECT_TRUE(holds_pattern(large.bytes(), 1));
}

TEST_P(Request, MakesAFutureOfTheOutcome) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  std::future<message_info> future = region_.start_read_at(3, into).to_future();
  EXPECT_EQ(future.wait_for(0s), std::future_status::timeout);
  pair_.resume_owner();
  ASSERT_TRUE(pair_.drive_until([&] { return future.wait_for(0s) == std::future_status::ready; }));
  future.get();
  EXPECT_TRUE(holds_pattern(into, 0, 3));
}

TEST_P(Request, MakesAFutureThatThrowsTheError) {
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  std::future<message_info> future = region_.start_read_at(3, into, {.timeout = 10ms}).to_future();
  ASSERT_TRUE(pair_.drive_until([&] { return future.wait_for(0s) == std::future_status::ready; }));
  EXPECT_THROW(future.get(), ucx::error);
  pair_.resume_owner();
  EXPECT_THROW(region_.start_read_at(owned_.size(), into).to_future().get(), ucx::error);
}

TEST_P(Request, ResumesTheCoroutineThatAwaitsIt) {
  std::vector<std::byte> into = blank(3000);
  std::atomic<int> step{0};
  bool good = false;
  const auto read_all = [&]() -> fire {
    // Started together, awaited one after the other.
    request first = region_.start_read_at(0, std::span(into).first(1000));
    request second = region_.start_read_at(1000, std::span(into).subspan(1000, 1000));
    co_await std::move(first);
    step = 1;
    co_await std::move(second);
    step = 2;
    co_await region_.start_read_at(2000, std::span(into).subspan(2000, 1000));
    good = holds_pattern(into);
    step = 3;
  };
  pair_.pause_owner();
  read_all();
  EXPECT_EQ(step, 0);
  pair_.resume_owner();
  EXPECT_TRUE(pair_.drive_until([&] { return step == 3; }));
  EXPECT_TRUE(good);
}

TEST_P(Request, ThrowsIntoTheCoroutineThatAwaitsIt) {
  std::vector<std::byte> into = blank();
  std::atomic<int> outcome{0};
  const auto read = [&]() -> fire {
    int seen = -1;
    try {
      co_await region_.start_read_at(0, into, {.timeout = 20ms});
    } catch (const ucx::error& failed) {
      seen = failed.code().value();
    }
    outcome = seen;
  };
  pair_.pause_owner();
  read();
  EXPECT_TRUE(pair_.drive_until([&] { return outcome != 0; }));
  EXPECT_EQ(outcome, static_cast<int>(errc::timed_out));
  pair_.resume_owner();
}

TEST_P(Request, GivesUpReadsWhenDestroyed) {
  // More than go out at once, so that some are given up before they were asked.
  constexpr std::size_t count = 600;
  std::vector<std::vector<std::byte>> freed(count, blank(2000));
  std::vector<std::byte> kept = blank(2000);
  pair_.pause_owner();
  {
    std::vector<request> reads;
    for (std::vector<std::byte>& into : freed) reads.push_back(region_.start_read_at(0, into));
    reads.push_back(region_.start_read_at(0, kept));
  }
  freed.clear();  // a late answer that still knew the memory is for AddressSanitizer to find
  pair_.resume_owner();
  EXPECT_TRUE(works(region_));
  EXPECT_TRUE(all_bytes_are(kept, untouched));
}

TEST_P(Request, TellsTheHandlerWhenDestroyedUnfinished) {
  std::vector<std::byte> into = blank();
  std::atomic<int> outcome{0};
  pair_.pause_owner();
  {
    request read = region_.start_read_at(0, into);
    read.then([&](std::error_code ec) { outcome = ec.value(); });
  }
  EXPECT_TRUE(pair_.drive_until([&] { return outcome != 0; }));
  EXPECT_EQ(outcome, static_cast<int>(errc::canceled));
  pair_.resume_owner();
}

TEST_P(StuckWrite, LetsGoOfItsMemoryWhenDestroyed) {
  constexpr std::size_t size = 64 << 20U;
  memory_region large = pair_.allocate(size);
  remote_region region = pair_.open(large);
  auto from = std::make_unique<std::vector<std::byte>>(pattern(size, 5));
  pair_.pause_owner();
  const clock::time_point begin = clock::now();
  {
    request write = region.start_write_at(0, *from);
    ASSERT_FALSE(write.done()) << "64 MiB fit the sockets' buffers";
  }
  EXPECT_LT(clock::now() - begin, patience(15s)) << "the heartbeat's time-out of 1 s bounds it";
  from.reset();  // UCX reading on is for AddressSanitizer to find
  std::error_code ec;
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::canceled);
  pair_.resume_owner();
  // What the owner got are whole pieces, from the beginning.
  const endpoint again = pair_.connect();
  remote_region reopened(again, owned_.descriptor());
  EXPECT_TRUE(works(reopened));
}

TEST_P(StuckWrite, LetsGoOfItsMemoryAtItsDeadline) {
  constexpr std::size_t size = 64 << 20U;
  memory_region large = pair_.allocate(size);
  remote_region region = pair_.open(large);
  auto from = std::make_unique<std::vector<std::byte>>(pattern(size, 5));
  pair_.pause_owner();
  const clock::time_point begin = clock::now();
  std::error_code ec;
  region.write_at(0, *from, {.timeout = 100ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(clock::now() - begin, patience(15s)) << "the heartbeat's time-out of 1 s bounds it";
  from.reset();
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(region.first_unconfirmed(), 0U);
  pair_.resume_owner();
  const endpoint again = pair_.connect();
  remote_region reopened(again, owned_.descriptor());
  EXPECT_TRUE(works(reopened));
}

TEST_P(Request, DropsTheConnectionForAWriteDestroyedInsideAHandler) {
  constexpr std::size_t size = 64 << 20U;
  memory_region large = pair_.allocate(size);
  remote_region region = pair_.open(large);
  auto from = std::make_unique<std::vector<std::byte>>(pattern(size, 5));
  std::vector<std::byte> into = blank();
  pair_.pause_owner();
  std::optional<request> write = region.start_write_at(0, *from);
  std::atomic<bool> called{false};
  // Nothing but the cancellation below ends it: a handler that comes late would run outside of any.
  request read = region.start_read_at(0, into);
  read.then([&](std::error_code) {
    write.reset();
    from.reset();
    called = true;
  });
  read.cancel();
  ASSERT_TRUE(pair_.drive_until([&] { return called.load(); }));
  EXPECT_TRUE(pair_.connection->status());
  pair_.resume_owner();
  const endpoint again = pair_.connect();
  remote_region reopened(again, owned_.descriptor());
  EXPECT_TRUE(works(reopened));
}

TEST_P(Request, MovesAndSwaps) {
  std::vector<std::byte> into = blank();
  std::vector<std::byte> other = blank();
  pair_.pause_owner();
  request a = region_.start_read_at(0, into);
  request b = region_.start_read_at(100, other);
  a.swap(b);
  request c = std::move(a);
  EXPECT_TRUE(a.done());  // NOLINT(bugprone-use-after-move): what is left is empty
  a = std::move(b);       // the read at 0
  b = std::move(c);       // the read at 100
  a = request();          // given up
  pair_.resume_owner();
  b.wait();
  EXPECT_TRUE(holds_pattern(other, 0, 100));
  EXPECT_TRUE(works(region_));
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

INSTANTIATE_TEST_SUITE_P(Messages, Request,
                         testing::ValuesIn(message_pairs(route::tcp_by_listener)), name_of_pair);
INSTANTIATE_TEST_SUITE_P(Messages, StuckWrite,
                         testing::ValuesIn(message_pairs(route::tcp_by_listener)), name_of_pair);

}  // namespace
}  // namespace ucx::test
