#include "ucx/worker.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();

bool is_readable(int fd) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

TEST(Worker, HasAnAddressThatIsItsOwn) {
  simulated_pair pair;
  EXPECT_FALSE(pair.owner.address().empty());
  EXPECT_EQ(pair.owner.address(), pair.owner.address());
  EXPECT_NE(pair.owner.address(), pair.reader.address());
  EXPECT_EQ(pair.owner.mode(), progress_mode::caller);
}

/// Returns how many contexts and workers of a UCX of that version are left.
std::pair<std::size_t, std::size_t> left_by_a_lost_port(unsigned minor) {
  link_options link;
  link.version_minor = minor;
  fake_network network(link, 1);
  fake_process& process = network.add_process("owner");
  {
    std::error_code ec;
    const context parent = detail::core_access::make_context(process.api(), {}, ec);
    const worker driver(parent);
    detail::core_access::core(parent)->port_is_lost();
  }
  return {network.live().contexts, network.live().workers};
}

/// UCX 1.13 may keep a pointer to memory that it has freed.
TEST(Worker, IsLeftToUcxWhereThatHasClosedAPort) {
  EXPECT_EQ(left_by_a_lost_port(13), std::pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(left_by_a_lost_port(14), std::pair(std::size_t{0}, std::size_t{0}));
}

TEST(Worker, ProgressTellsWhetherAnythingHappened) {
  simulated_pair pair;
  EXPECT_FALSE(pair.reader.progress());
  pair.reader.post([] {});
  EXPECT_TRUE(pair.reader.progress());
  EXPECT_FALSE(pair.reader.progress());
}

TEST(Worker, RunsPostedFunctionsOnceAndInOrder) {
  simulated_pair pair;
  std::vector<int> ran;
  for (int i = 0; i < 5; ++i) pair.reader.post([&ran, i] { ran.push_back(i); });
  EXPECT_TRUE(ran.empty());
  pair.reader.progress();
  EXPECT_EQ(ran, (std::vector{0, 1, 2, 3, 4}));
  pair.reader.progress();
  EXPECT_EQ(ran.size(), 5U);
}

TEST(Worker, RunsWhatAPostedFunctionPosts) {
  simulated_pair pair;
  int depth = 0;
  std::function<void()> deeper = [&] {
    if (++depth < 10) pair.reader.post([&] { deeper(); });
  };
  pair.reader.post([&] { deeper(); });
  for (int round = 0; round < 20; ++round) pair.reader.progress();
  EXPECT_EQ(depth, 10);
}

TEST(Worker, DestroysUnrunWhatIsStillPosted) {
  const auto held = std::make_shared<int>(1);
  bool ran = false;
  {
    simulated_pair pair;
    worker doomed(pair.reader_context);
    doomed.post([held, &ran] { ran = true; });
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(ran);
}

TEST(Worker, PostIsForAnyThread) {
  simulated_pair pair;
  std::atomic<int> ran = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int each = 0; each < 100; ++each) pair.reader.post([&] { ++ran; });
    });
  }
  threads.clear();
  pair.reader.progress();
  EXPECT_EQ(ran, 400);
}

TEST(Worker, RestsUntilTheNextDeadline) {
  served_region served(1000);
  served.connection.wait_connected();
  EXPECT_EQ(served.pair.owner.next_timeout(), never);
  std::vector<std::byte> into(100);
  served.region.read_at(0, into);
  served.network().advance(1min);
  EXPECT_EQ(served.pair.reader.next_timeout(), never);
  served.pair.owner_process.stop();
  request read = served.region.start_read_at(0, into, {.timeout = 100ms});
  EXPECT_LE(served.pair.reader.next_timeout(), 100ms);
  read.wait_for(50ms);
  EXPECT_LE(served.pair.reader.next_timeout(), 50ms);
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.pair.owner_process.resume();
}

TEST(Worker, ServesAnEventLoopOfTheCallers) {
  simulated_pair_options options;
  options.reader_worker.progress = progress_mode::external;
  options.owner_worker.progress = progress_mode::external;
  served_region served(10000, options);
  served.pair.reader_process.on_pump({});
  std::vector<std::byte> into(10000);
  request read = served.region.start_read_at(0, into);
  ASSERT_GE(served.pair.reader.event_fd(), 0);
  int sleeps = 0;
  for (int round = 0; round < 10000 && !read.done(); ++round) {
    while (served.pair.reader.progress()) {
    }
    if (read.done() || !served.pair.reader.arm()) continue;
    ++sleeps;
    // A caller sleeps in poll() until there is an event, or the deadline has come.
    const auto limit = served.pair.reader.next_timeout();
    ASSERT_TRUE(served.network().run_until(
        [&] { return is_readable(served.pair.reader.event_fd()); }, limit));
  }
  ASSERT_TRUE(read.done());
  EXPECT_FALSE(read.error());
  EXPECT_GE(sleeps, 1);
}

TEST(Worker, ArmTellsThatThereIsSomethingToDo) {
  simulated_pair pair;
  while (pair.reader.progress()) {
  }
  EXPECT_TRUE(pair.reader.arm());
  pair.reader.post([] {});
  EXPECT_FALSE(pair.reader.arm());
  while (pair.reader.progress()) {
  }
  pair.reader.arm();
  EXPECT_TRUE(pair.reader.arm());
  pair.reader.signal();
  EXPECT_TRUE(is_readable(pair.reader.event_fd()));
}

TEST(Worker, RunStopsWhenAsked) {
  served_region served(1000);
  std::vector<std::byte> into(1000);
  std::stop_source stop;
  request read = served.region.start_read_at(0, into);
  read.then([&](std::error_code) { stop.request_stop(); });
  served.pair.reader.run(stop.get_token());
  EXPECT_TRUE(read.done());
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Worker, RunInsideItsOwnHandlerIsRefused) {
  simulated_pair pair;
  std::optional<std::error_code> refused;
  pair.reader.post([&] {
    try {
      pair.reader.run({});
    } catch (const ucx::error& failed) {
      refused = failed.code();
    }
  });
  pair.reader.progress();
  EXPECT_EQ(refused, std::error_code(errc::would_deadlock));
}

TEST(Worker, NeedsWakeupToSleep) {
  simulated_pair_options options;
  options.reader_context.features = feature::am;
  simulated_pair pair(options);
  EXPECT_EQ(pair.reader.event_fd(), -1);
  EXPECT_FALSE(pair.reader.arm());
  std::error_code ec;
  const worker none(pair.reader_context, {.progress = progress_mode::sleeping_thread}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
  EXPECT_THROW(worker(pair.reader_context, {.progress = progress_mode::sleeping_thread}),
               ucx::error);
}

TEST(Worker, WaitsWithoutWakeupToo) {
  simulated_pair_options options;
  options.reader_context.features = feature::am;
  options.owner_context.features = feature::am;
  served_region served(1000, options);
  std::vector<std::byte> into(1000);
  served.region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  served.pair.owner_process.stop();
  std::error_code ec;
  served.region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.pair.owner_process.resume();
}

TEST(Worker, SleepsWhenItWaitsForLong) {
  simulated_pair_options options;
  options.reader_worker.heartbeat_interval = 1h;  // a beat would be something to do
  options.reader_worker.heartbeat_timeout = 10h;
  served_region served(1000, options);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> into(10);
  request read = served.region.start_read_at(0, into);
  const std::uint64_t slept = served.pair.reader_process.count(call::wait_readable);
  read.wait_for(20s);
  EXPECT_GT(served.pair.reader_process.count(call::wait_readable), slept);
  served.pair.owner_process.resume();
}

TEST(Worker, OfADeadContextIsRefused) {
  simulated_pair pair;
  const context taken = std::move(pair.reader_context);
  std::error_code ec;
  const worker none(pair.reader_context, {}, ec);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(ec, errc::closed);
}

class ThreadedWorker : public testing::TestWithParam<progress_mode> {
 protected:
  static simulated_pair_options options() {
    simulated_pair_options made;
    made.link.time = time_mode::real;
    made.link.latency = 1us;
    made.owner_worker.progress = GetParam();
    made.reader_worker.progress = GetParam();
    return made;
  }
};

TEST_P(ThreadedWorker, DrivesBothSides) {
  served_region served(100000, options());
  std::vector<std::byte> into(100000);
  for (int round = 0; round < 20; ++round) {
    std::fill(into.begin(), into.end(), std::byte{0});
    served.region.read_at(0, into);
    ASSERT_TRUE(holds_pattern(into));
  }
  served.region.write_at(0, pattern(100000, 1));
  served.region.flush();
  EXPECT_TRUE(holds_pattern(served.memory, 1));
  EXPECT_FALSE(served.pair.reader.progress());
  EXPECT_THROW(served.pair.reader.run({}), ucx::error);
}

TEST_P(ThreadedWorker, IsSharedByThreads) {
  served_region served(100000, options());
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t round = 0; round < 50; ++round) {
        std::vector<std::byte> into(100);
        const std::uint64_t offset = (i * 50 + round) * 100;
        served.region.read_at(offset, into);
        if (holds_pattern(into, 0, offset)) ++right;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 150);
}

TEST_P(ThreadedWorker, RunsHandlersAndPostedFunctionsOnItsThread) {
  served_region served(100, options());
  std::vector<std::byte> into(100);
  // Its thread is kept busy until the handler is in place: one given to a request that has ended
  // already would run here.
  std::promise<std::thread::id> busy;
  std::promise<void> in_place;
  served.pair.reader.post([&busy, in_place = in_place.get_future()] {
    busy.set_value(std::this_thread::get_id());
    in_place.wait_for(60s);
  });
  const std::thread::id progress_thread = busy.get_future().get();
  request read = served.region.start_read_at(0, into);
  std::promise<std::thread::id> handled;
  read.then([&](std::error_code) { handled.set_value(std::this_thread::get_id()); });
  in_place.set_value();
  const std::thread::id handler = handled.get_future().get();
  EXPECT_NE(handler, std::this_thread::get_id());
  EXPECT_EQ(handler, progress_thread);
}

TEST_P(ThreadedWorker, LastReferenceMayGoInItsOwnHandler) {
  simulated_pair pair(options());
  std::vector<std::byte> memory = pattern(100);
  const memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  std::promise<void> gone;
  {
    std::error_code ec;
    const context own = detail::core_access::make_context(pair.reader_process.api(), {}, ec);
    ASSERT_FALSE(ec);
    auto last = std::make_unique<worker>(own, worker_options{.progress = GetParam()});
    worker* const raw = last.get();
    raw->post([last = std::move(last), &gone]() mutable {
      last.reset();
      gone.set_value();
    });
  }
  gone.get_future().get();
  // Its thread takes the rest of it apart; the pair's last look finds nothing left.
  const auto limit = std::chrono::steady_clock::now() + 30s;
  // Its context goes after it: what it does last.
  const auto is_gone = [&] {
    return pair.network.live().workers == 2 && pair.network.live().contexts == 2;
  };
  while (!is_gone() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(is_gone());
}

TEST_P(ThreadedWorker, EndsNotBeforeItsHandlersHave) {
  simulated_pair pair(options());
  for (int round = 0; round < 20; ++round) {
    std::promise<void> begun;
    std::atomic<bool> ended{false};
    {
      worker going(pair.reader_context, worker_options{.progress = GetParam()});
      going.post([&] {
        begun.set_value();
        std::this_thread::sleep_for(2ms);
        ended = true;
      });
      begun.get_future().get();
    }
    ASSERT_TRUE(ended);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ThreadedWorker,
                         testing::Values(progress_mode::polling_thread,
                                         progress_mode::sleeping_thread),
                         [](const auto& mode) {
                           return mode.param == progress_mode::polling_thread ? "Polling"
                                                                              : "Sleeping";
                         });

}  // namespace
}  // namespace ucx::test
