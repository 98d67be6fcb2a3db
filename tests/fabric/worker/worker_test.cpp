// How a worker is driven: by its threads, by the caller, and by the caller's event loop.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/scheduled_call.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

context tcp_context() { return context(context_options_for(route::tcp_by_address)); }

/// Waits for another thread.
std::chrono::nanoseconds processor_time() {
  ::rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const ::timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

TEST(Worker, SleepingNeedsTheWakeupFeature) {
  context_options options = context_options_for(route::tcp_by_address);
  options.features = feature::rma | feature::am;
  const context without(options);
  std::error_code ec;
  const worker sleeping(without, {.progress = progress_mode::sleeping_thread}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
  EXPECT_THROW(worker(without, {.progress = progress_mode::sleeping_thread}), error);
  worker polling(without, {.progress = progress_mode::polling_thread});
  EXPECT_EQ(polling.event_fd(), -1);
  EXPECT_FALSE(polling.arm());
  polling.signal();
}

TEST(Worker, AsleepWakesForACallThatIsDueEarlier) {
  const context parent = tcp_context();
  worker asleep(parent, {.progress = progress_mode::sleeping_thread});
  const scheduled_call late = asleep.call_after(1h, [] {});
  std::atomic<int> calls{0};
  // Some of them find it asleep.
  for (int round = 1; round <= 20; ++round) {
    std::this_thread::sleep_for(5ms);
    const scheduled_call early = asleep.call_after(1ms, [&] { ++calls; });
    ASSERT_TRUE(soon([&] { return calls == round; })) << round;
  }
}

TEST(Worker, HasAnAddressOfItsOwn) {
  const context parent = tcp_context();
  const worker one(parent);
  const worker two(parent);
  EXPECT_EQ(one.address(), one.address());
  EXPECT_NE(one.address(), two.address());
  EXPECT_EQ(worker_address::decode(one.address().encode()), one.address());
}

TEST(Worker, IsNotMadeOfAContextThatWasMovedFrom) {
  context parent = tcp_context();
  const context taken = std::move(parent);
  std::error_code ec;
  const worker made(parent, {}, ec);  // NOLINT(bugprone-use-after-move): that is the test
  EXPECT_EQ(ec, errc::closed);
}

TEST(Worker, RunsWhatIsPostedOnItsThread) {
  const context parent = tcp_context();
  for (const progress_mode mode : {progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    SCOPED_TRACE(mode);
    worker driven(parent, {.progress = mode});
    std::this_thread::sleep_for(20ms);  // asleep by now, if it sleeps
    std::atomic<int> count{0};
    std::atomic<std::thread::id> ran_on;
    std::vector<std::jthread> posters;
    for (int i = 0; i < 4; ++i) {
      posters.emplace_back([&] {
        for (int n = 0; n < 250; ++n) {
          driven.post([&] {
            ran_on = std::this_thread::get_id();
            ++count;
          });
        }
      });
    }
    EXPECT_TRUE(soon([&] { return count == 1000; }));
    EXPECT_NE(ran_on.load(), std::this_thread::get_id());
  }
}

TEST(Worker, RunsWhatIsPostedInsideTheCallersProgress) {
  const context parent = tcp_context();
  worker driven(parent);
  std::vector<int> order;
  driven.post([&] { order.push_back(1); });
  std::jthread([&] { driven.post([&] { order.push_back(2); }); }).join();
  EXPECT_TRUE(order.empty());
  while (driven.progress()) {
  }
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TEST(Worker, LetsAPostedFunctionPostAnother) {
  const context parent = tcp_context();
  worker driven(parent, {.progress = progress_mode::sleeping_thread});
  std::atomic<int> left{1000};
  std::function<void()> again = [&] {
    if (--left > 0) driven.post([&] { again(); });
  };
  driven.post([&] { again(); });
  EXPECT_TRUE(soon([&] { return left == 0; }));
}

TEST(Worker, DestroysUnrunWhatWasPostedTooLate) {
  const auto token = std::make_shared<int>(0);
  {
    const context parent = tcp_context();
    worker driven(parent);
    driven.post([token] { ADD_FAILURE() << "nobody drives this worker"; });
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Worker, CostsNoProcessorTimeWhenIdle) {
  const context owner_context = tcp_context();
  const context reader_context = tcp_context();
  worker owner(owner_context, {.progress = progress_mode::sleeping_thread});
  worker reader(reader_context, {.progress = progress_mode::sleeping_thread});
  memory_region owned = memory_region::allocate(owner_context, 4096, access::read_write);
  const worker_address address = owner.address();
  std::vector<endpoint> connections;
  std::vector<std::byte> into(100);
  for (int i = 0; i < 20; ++i) {
    connections.emplace_back(reader, address);
    connections.back().wait_connected();
    remote_region region(connections.back(), owned.descriptor());
    region.read_at(0, into);
    region.write_at(0, into);
    region.flush();
  }
  // The last heartbeat that was due for what is over now.
  std::this_thread::sleep_for(600ms);
  // In the quietest of some stretches: the end of what another test began may fall into one.
  std::chrono::nanoseconds least = 1h;
  for (int looks = 0; looks < 6 && least >= 50ms; ++looks) {
    const auto before = processor_time();
    std::this_thread::sleep_for(500ms);
    least = std::min(least, processor_time() - before);
  }
  EXPECT_LT(least, 50ms);
}

TEST(Worker, IsDrivenByAnEventLoopWithoutLosingAWakeUp) {
  constexpr int round_trips = 2000;
  context owner_context = tcp_context();
  context reader_context = tcp_context();
  // No heartbeat may hide a lost wake-up.
  worker_options options{.operation_timeout = 60s,
                         .heartbeat_interval = std::chrono::hours(1),
                         .heartbeat_timeout = std::chrono::hours(1)};
  options.progress = progress_mode::external;
  worker owner(owner_context, options);
  worker reader(reader_context, options);
  const worker_address address = owner.address();
  memory_region owned = memory_region::allocate(owner_context, 4096, access::read);
  fill_pattern(owned.bytes());
  event_loop serving(owner);
  const auto drive_until = [&](const std::function<bool()>& done) {
    while (!done()) {
      while (reader.progress()) {
      }
      if (done()) return true;
      if (!reader.arm()) continue;
      ::pollfd readable = {reader.event_fd(), POLLIN, 0};
      if (::poll(&readable, 1, 15'000) == 0) return false;
    }
    return true;
  };
  endpoint connection(reader, address);
  remote_region region(connection, owned.descriptor());
  std::vector<std::byte> into(16);
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    request read = region.start_read_at(i, into);
    ASSERT_TRUE(drive_until([&] { return read.done(); })) << "no wake-up at round trip " << i;
    ASSERT_FALSE(read.error());
    ASSERT_TRUE(holds_pattern(into, 0, i));
    if (i % 100 == 0) std::this_thread::sleep_for(2ms);  // both sides are asleep in between
  }
  EXPECT_GE(serving.sleeps(), 20U);
}

TEST(Worker, TellsAnEventLoopHowLongItMaySleep) {
  pair_options options{.owner = progress_mode::external};
  // Nothing but the read's own deadline is to be waited for.
  options.reader_defaults.heartbeat_interval = std::chrono::hours(1);
  options.reader_defaults.heartbeat_timeout = std::chrono::hours(1);
  connected_pair pair(options);
  memory_region owned = pair.allocate(4096);
  remote_region region = pair.open(owned);
  while (pair.reader().progress()) {
  }
  pair.pause_owner();
  std::vector<std::byte> into(8);
  const clock::time_point begin = clock::now();
  request read = region.start_read_at(0, into, {.timeout = 200ms});
  EXPECT_LE(pair.reader().next_timeout(), 200ms);
  EXPECT_TRUE(pair.reader().next_timeout() > 0ns || clock::now() - begin >= 200ms);
  std::this_thread::sleep_for(250ms);
  EXPECT_EQ(pair.reader().next_timeout(), 0ns);
  pair.reader().progress();
  EXPECT_EQ(read.error(), errc::timed_out);
  pair.resume_owner();
}

TEST(Worker, SignalWakesTheEventLoop) {
  const context parent = tcp_context();
  worker driven(parent, {.progress = progress_mode::external});
  while (driven.progress()) {
  }
  ASSERT_TRUE(driven.arm());
  ::pollfd readable = {driven.event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 20), 0);
  std::jthread signals([&] { driven.signal(); });
  EXPECT_EQ(::poll(&readable, 1, 15'000), 1);
}

TEST(Worker, PostWakesTheEventLoop) {
  const context parent = tcp_context();
  worker driven(parent, {.progress = progress_mode::external});
  bool ran = false;
  driven.post([&] { ran = true; });
  EXPECT_FALSE(driven.arm()) << "there is something to do already";
  while (driven.progress()) {
  }
  EXPECT_TRUE(ran);
  // The wake-up of post() is still pending: arming takes it, and succeeds the next time.
  for (int tries = 0; tries < 100 && !driven.arm(); ++tries) driven.progress();
  std::jthread posts([&] { driven.post([] {}); });
  ::pollfd readable = {driven.event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 15'000), 1);
}

TEST(Worker, RunsUntilItIsToldToStop) {
  context owner_context = tcp_context();
  worker owner(owner_context);
  const worker_address address = owner.address();
  memory_region owned = memory_region::allocate(owner_context, 100, access::read);
  {
    std::jthread serving([&](const std::stop_token& stop) { owner.run(stop); });
    context reader_context = tcp_context();
    worker reader(reader_context);
    endpoint connection(reader, address);
    remote_region region(connection, owned.descriptor());
    std::vector<std::byte> into(100);
    for (int i = 0; i < 100; ++i) region.read_at(0, into);
    std::this_thread::sleep_for(50ms);  // asleep by now
  }
  std::stop_source stopped;
  stopped.request_stop();
  owner.run(stopped.get_token());
}

TEST(Worker, IsNotRunBesideItsOwnThread) {
  const context parent = tcp_context();
  worker driven(parent, {.progress = progress_mode::polling_thread});
  EXPECT_THROW(driven.run(std::stop_token()), error);
  EXPECT_FALSE(driven.progress());
  worker other(parent);
  bool refused = false;
  other.post([&] {
    try {
      other.run(std::stop_token());
    } catch (const error& failed) {
      refused = failed.code() == errc::would_deadlock;
    }
  });
  while (other.progress()) {
  }
  EXPECT_TRUE(refused);
}

/// Both workers on one core: neither may starve the other for longer than a time slice or so.
class OneCore : public testing::TestWithParam<pair_options> {
 protected:
  OneCore() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &before_)) continue;
      CPU_SET(core, &one);
      break;
    }
    ::sched_setaffinity(0, sizeof one, &one);  // and with it every thread that is started
  }
  ~OneCore() override { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  ::cpu_set_t before_{};
};

TEST_P(OneCore, IsEnoughForTwoWorkers) {
  connected_pair pair(GetParam());
  memory_region owned = pair.allocate(4096);
  fill_pattern(owned.bytes());
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(8);
  for (std::uint64_t i = 0; i < effort<std::uint64_t>(5000); ++i) {
    region.read_at(i % 4000, into);
    ASSERT_TRUE(holds_pattern(into, 0, i % 4000));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, OneCore, testing::ValuesIn([] {
                           std::vector<pair_options> tcp;
                           for (const pair_options& options : every_pair()) {
                             if (options.over == route::tcp_by_address) tcp.push_back(options);
                           }
                           return tcp;
                         }()),
                         name_of_pair);

}  // namespace
}  // namespace ucx::test
