// Requests, progress and threads, by the rows E1 to E22 of docs/explanation/comparisons.md.
#include <sys/epoll.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/handlers/fire.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"
#include "ucx/progress_loop.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t shared_size = std::size_t{1} << 20U;

class ConformanceE : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    if (const std::string why = pair_.why_not_forced(); !why.empty()) GTEST_SKIP() << why;
  }

  connected_pair pair_{GetParam()};
  memory_region owned_ = pair_.allocate(shared_size);
  remote_region region_ = pair_.open(owned_);
  std::vector<std::byte> into_ = std::vector<std::byte>(1000);
};

TEST_P(ConformanceE, E1_E4_E5_E7_RequestsTellTheirOutcome) {
  request read = region_.start_read_at(0, into_);
  std::atomic<bool> told{false};
  read.then([&](std::error_code ec) { told = !ec; });
  read.wait();
  EXPECT_TRUE(read.done());
  EXPECT_FALSE(read.error());
  EXPECT_TRUE(pair_.drive_until([&] { return told.load(); }));
  request failed = region_.start_read_at(shared_size, into_);
  EXPECT_EQ(failed.error(), errc::out_of_range);
  EXPECT_NE(failed.description().find("1000 bytes"), std::string::npos);
  std::future<message_info> future = region_.start_read_at(0, into_).to_future();
  EXPECT_TRUE(pair_.drive_until([&] { return future.wait_for(0s) == std::future_status::ready; }));
  EXPECT_NO_THROW(future.get());
}

/// The owner answers meanwhile: each ends one way or the other, and then nothing more is written
/// into its memory.
TEST_P(ConformanceE, E2_E3_CancelsOneAndAll) {
  constexpr std::byte given_back{0x5a};
  fill_pattern(owned_.bytes(), 1);
  std::vector<std::vector<std::byte>> memory(20, std::vector<std::byte>(shared_size / 2));
  int canceled = 0;
  const auto expect_end = [&](request& ended, std::vector<std::byte>& into) {
    EXPECT_TRUE(ended.done());
    const std::error_code how = ended.error();
    if (how == errc::canceled) ++canceled;
    EXPECT_TRUE(!how || how == errc::canceled) << how.message();
    EXPECT_TRUE(how || holds_pattern(into, 1));
    std::ranges::fill(into, given_back);
  };
  for (int round = 0; round < effort(20, 5); ++round) {
    request one = region_.start_read_at(0, memory[0]);
    request other = region_.start_read_at(0, memory[1]);
    one.cancel();
    std::error_code ec;
    one.wait(ec);
    expect_end(one, memory[0]);
    other.wait();
    EXPECT_TRUE(holds_pattern(memory[1], 1)) << "only one was canceled";
  }
  std::vector<request> many;
  for (std::vector<std::byte>& each : memory) many.push_back(region_.start_read_at(0, each));
  EXPECT_EQ(pair_.connection->cancel_all(30s), 0U);
  for (std::size_t i = 0; i < many.size(); ++i) expect_end(many[i], memory[i]);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = region_.start_read_at(0, memory[i]);
  EXPECT_EQ(pair_.reader().cancel_all(30s), 0U);
  for (std::size_t i = 0; i < many.size(); ++i) expect_end(many[i], memory[i]);
  // This thread alone would take the answers, and has not since it asked for them.
  if (region_.transfer_method() == transfer_method::message && !pair_.reader_loop &&
      !pair_.to_itself() && GetParam().reader == progress_mode::caller) {
    EXPECT_GE(canceled, static_cast<int>(many.size()));
  }
  region_.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_, 1)) << "the connection is as good as before";
  for (const std::vector<std::byte>& each : memory) EXPECT_TRUE(all_bytes_are(each, given_back));
}

TEST_P(ConformanceE, G5_RequestsSayWhatTheyDoInParts) {
  request read = region_.start_read_at(0, into_);
  const request_attributes told = read.attributes();
  // What was done at once has none.
  if (region_.transfer_method() == transfer_method::message) {
    EXPECT_EQ(told.kind, operation_kind::read);
  }
  if (told.kind != operation_kind::none) {
    const request_attributes all{.kind = operation_kind::read,
                                 .size = into_.size(),
                                 .memory = memory_kind::host,
                                 .connection = pair_.connection->id(),
                                 .peer = pair_.connection->peer()};
    EXPECT_EQ(told, all);
  }
  read.wait();
  EXPECT_EQ(read.attributes(), told) << "it has ended";
}

TEST_P(ConformanceE, E6_WaitsForOneOrAllOfMany) {
  std::vector<request> many;
  for (int i = 0; i < 50; ++i) many.push_back(region_.start_read_at(0, into_));
  EXPECT_TRUE(wait_any(many, 30s).has_value());
  EXPECT_TRUE(wait_all(many, 30s));
}

TEST_P(ConformanceE, E15_CallsFunctionsInProgress) {
  std::atomic<int> before{0};
  std::atomic<int> rounds{0};
  worker& reader = pair_.reader();
  scheduled_call once =
      reader.call_in_progress(progress_phase::before, repetition::once, [&] { ++before; });
  EXPECT_TRUE(once.wait_for(30s));
  EXPECT_EQ(before, 1);
  scheduled_call every =
      reader.call_in_progress(progress_phase::after, repetition::every_round, [&] { ++rounds; });
  for (int i = 0; i < 20; ++i) region_.read_at(0, into_);
  EXPECT_TRUE(pair_.drive_until([&] { return rounds > 0; }));
  EXPECT_TRUE(every.cancel());
  const int last = rounds;
  region_.read_at(0, into_);
  EXPECT_EQ(rounds, last);
}

TEST_P(ConformanceE, E20_TimersNeedNoSignals) {
  std::atomic<bool> called{false};
  std::atomic<bool> canceled{false};
  // In a handler: no timer runs between the two calls, however long they take.
  pair_.reader().post([&] {
    scheduled_call unwanted = pair_.reader().call_after(1ms, [] { ADD_FAILURE(); });
    canceled = unwanted.cancel();
  });
  EXPECT_TRUE(pair_.drive_until([&] { return canceled.load(); }));
  EXPECT_TRUE(pair_.reader().call_after(1h, [] { ADD_FAILURE(); }).cancel());
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::chrono::steady_clock::duration::rep> after{0};
  scheduled_call timer = pair_.reader().call_after(20ms, [&] {
    after = (std::chrono::steady_clock::now() - begin).count();
    called = true;
  });
  EXPECT_TRUE(timer.wait_for(30s));
  EXPECT_TRUE(called);
  EXPECT_GE(std::chrono::steady_clock::duration(after), 20ms);
  const auto when = std::chrono::steady_clock::now() + 20ms;
  std::atomic<bool> early{false};
  scheduled_call alarm =
      pair_.reader().call_at(when, [&] { early = std::chrono::steady_clock::now() < when; });
  EXPECT_FALSE(pair_.reader().call_after(1h, [] { ADD_FAILURE(); }).wait_for(1ms));
  EXPECT_TRUE(alarm.wait_for(30s));
  EXPECT_FALSE(early);
}

TEST_P(ConformanceE, E20_G7_TimersRepeatUntilTheyAreCanceled) {
  std::atomic<int> calls{0};
  scheduled_call every = pair_.reader().call_every(1ms, [&] { ++calls; });
  EXPECT_TRUE(pair_.drive_until([&] { return calls >= 3; }));
  EXPECT_FALSE(every.done());
  EXPECT_TRUE(every.cancel());
  EXPECT_TRUE(every.done());
  const int last = calls;
  EXPECT_TRUE(pair_.reader().call_after(5ms, [] {}).wait_for(30s));
  EXPECT_EQ(calls, last);
}

INSTANTIATE_TEST_SUITE_P(Pairs, ConformanceE, testing::ValuesIn(every_pair()), name_of_pair);

/// The owner stands still until it is told to go on: nothing ends by itself.
class ConformanceEPaused : public ConformanceE {
 protected:
  std::vector<request> start(std::size_t count) {
    memory_.assign(count, std::vector<std::byte>(1000));
    std::vector<request> many;
    for (std::vector<std::byte>& each : memory_) many.push_back(region_.start_read_at(0, each));
    return many;
  }

  std::vector<std::vector<std::byte>> memory_;
};

TEST_P(ConformanceEPaused, E2_E3_CancelsOneAndAll) {
  fill_pattern(owned_.bytes(), 1);
  pair_.pause_owner();
  std::vector<request> many = start(21);
  many[0].cancel();
  std::error_code ec;
  many[0].wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_FALSE(many[1].done()) << "only one was canceled";
  EXPECT_EQ(pair_.connection->cancel_all(30s), 0U);
  for (request& each : many) {
    EXPECT_TRUE(each.done());
    EXPECT_EQ(each.error(), errc::canceled);
  }
  many = start(5);
  EXPECT_EQ(pair_.reader().cancel_all(30s), 0U);
  for (request& each : many) EXPECT_EQ(each.error(), errc::canceled);
  pair_.resume_owner();
  region_.read_at(0, into_);  // late answers are nobody's
  EXPECT_TRUE(holds_pattern(into_, 1));
}

TEST_P(ConformanceEPaused, E6_LimitsOfWaitsRunOut) {
  pair_.pause_owner();
  std::vector<request> many = start(10);
  EXPECT_FALSE(many[0].wait_for(10ms));
  EXPECT_EQ(wait_any(many, 10ms), std::nullopt);
  EXPECT_FALSE(wait_all(many, 10ms));
  for (request& each : many) EXPECT_FALSE(each.done()) << "a wait ends nothing";
  many[3].cancel();
  EXPECT_EQ(wait_any(many, 30s), 3U);
  EXPECT_FALSE(wait_all(many, 10ms)) << "one is not all";
  pair_.resume_owner();
  EXPECT_TRUE(wait_all(many, 30s));
  for (std::size_t i = 0; i < many.size(); ++i) EXPECT_EQ(bool(many[i].error()), i == 3) << i;
}

std::vector<pair_options> pairs_that_pause() {
  std::vector<pair_options> all;
  for (const route over : {route::tcp_by_address, route::tcp_by_listener}) {
    for (const pair_options& each : message_pairs(over)) all.push_back(each);
    all.push_back({over, progress_mode::external, progress_mode::external, {}, {}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pairs, ConformanceEPaused, testing::ValuesIn(pairs_that_pause()),
                         name_of_pair);

class ConformanceEShared : public testing::TestWithParam<route> {
 protected:
  static pair_options options() {
    pair_options made;
    made.over = GetParam();
    made.reader_defaults.thread_mode = thread_mode::multi;
    return made;
  }

  connected_pair pair_{options()};
  memory_region owned_ = pair_.allocate(shared_size);
};

TEST_P(ConformanceEShared, E16_EightThreadsShareEverything) {
  fill_pattern(owned_.bytes());
  remote_region shared = pair_.open(owned_);
  std::atomic<int> right{0};
  constexpr int rounds = 40;
  {
    std::vector<std::jthread> threads;
    for (std::size_t which = 0; which < 8; ++which) {
      threads.emplace_back([&, which] {
        const std::size_t place = 100'000 + which * 10'000;
        remote_atomic<std::uint64_t> number(shared, 99'992);
        for (int round = 0; round < rounds; ++round) {
          // One handle for all: reads, writes, batches, atomics, flushes, calls.
          std::vector<std::byte> mine = pattern(1000, which);
          shared.write_at(place, mine);
          shared.flush();
          std::vector<std::byte> back(1000);
          shared.post_read_at(place, back);
          shared.flush();
          std::vector<std::byte> pieces(640);
          std::vector<read_piece> batch;
          for (std::size_t i = 0; i < 10; ++i) {
            batch.push_back({i * 100, std::span(pieces).subspan(i * 64, 64)});
          }
          shared.read_batch(batch);
          if (which < 7) number.fetch_add(1);
          scheduled_call timer = pair_.reader().call_after(1h, [] {});
          if (round % 10 == 0) {
            endpoint another = pair_.connect();
            std::error_code ec;
            const listener door(pair_.reader(), any_port_of_network(), {}, ec);
            remote_region region(another, owned_.descriptor());
            region.read_at(place, mine);
            another.fence();
            pair_.reader().flush();
            another.close();
          }
          if (back == pattern(1000, which) && holds_pattern(std::span(pieces).last(64), 0, 900)) {
            ++right;
          }
        }
      });
    }
  }
  EXPECT_EQ(right, 8 * rounds);
}

/// Either may be the last that keeps the connection.
TEST_P(ConformanceEShared, E16_ConnectionAndRequestGoAtOnce) {
  const std::size_t before = pair_.reader().connections();
  std::vector<std::byte> into(8);
  for (int round = 0; round < effort(80, 20); ++round) {
    std::optional<endpoint> connection = pair_.connect();
    connection->wait_connected();
    request waits = connection->start_receive(tag_match::any(), into);
    std::atomic<int> here{0};
    const auto meet = [&here] {
      for (++here; here < 2;) std::this_thread::yield();
    };
    {
      const std::jthread other([&, last = std::move(waits)]() mutable {
        meet();
        last = request();
      });
      meet();
      connection.reset();
    }
  }
  EXPECT_TRUE(pair_.drive_until([&] { return pair_.reader().connections() == before; }));
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceEShared,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener,
                                         route::shared_memory),
                         [](const auto& chosen) { return to_string(chosen.param); });

TEST(ConformanceELoops, E8_E9_E11_APlainEpollLoop) {
  pair_options chosen;
  chosen.reader = progress_mode::external;
  connected_pair pair(chosen);
  const memory_region owned = pair.allocate(shared_size);
  remote_region region = pair.open(owned);
  pair.reader_loop.reset();  // this test is the loop
  worker& reader = pair.reader();
  const int loop = ::epoll_create1(0);
  ::epoll_event wanted = {};
  wanted.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(loop, EPOLL_CTL_ADD, reader.event_fd(), &wanted), 0);
  int left = 100;
  std::vector<std::byte> into(1000);
  request read;
  std::function<void()> again = [&] {
    read = region.start_read_at(0, into);
    read.then([&](std::error_code ec) {
      EXPECT_FALSE(ec);
      if (--left > 0) again();
    });
  };
  again();
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (left > 0 && std::chrono::steady_clock::now() < until) {
    while (reader.progress()) {
    }
    if (!reader.arm()) continue;
    ::epoll_event ready = {};
    const auto limit = std::min<std::chrono::nanoseconds>(reader.next_timeout(), 5s);
    ASSERT_GE(
        ::epoll_wait(loop, &ready, 1,
                     static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count())),
        0);
  }
  EXPECT_EQ(std::exchange(left, 0), 0);  // what is outstanding begins nothing more
  std::jthread waker([&] { reader.signal(); });
  ::epoll_event ready = {};
  EXPECT_EQ(::epoll_wait(loop, &ready, 1, 20'000), 1);
  ::close(loop);
}

TEST(ConformanceELoops, E12_E17_OneLoopForSeveralWorkers) {
  connected_pair pair;
  const memory_region owned = pair.allocate(shared_size);
  const worker second(pair.reader_context());
  const endpoint connection(second, pair.address());
  remote_region one = pair.open(owned);
  remote_region other(connection, owned.descriptor());
  progress_loop loop;
  loop.add(pair.reader());
  loop.add(second);
  std::stop_source stop;
  std::vector<std::byte> into(1000);
  std::atomic<int> left{2};
  const auto done = [&](std::error_code ec) {
    EXPECT_FALSE(ec);
    if (--left == 0) stop.request_stop();
  };
  request reads[2] = {one.start_read_at(0, into), other.start_read_at(0, into)};
  for (request& each : reads) each.then(done);
  loop.run(stop.get_token());
  EXPECT_EQ(left, 0);
  // Stopped from another thread while it sleeps.
  std::stop_source later;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    later.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  loop.run(later.get_token());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

class ConformanceERun : public testing::TestWithParam<route> {};

TEST_P(ConformanceERun, E12_RunDrivesUntilToldToStop) {
  pair_options chosen;
  chosen.over = GetParam();
  chosen.owner = progress_mode::external;
  connected_pair pair(chosen);
  pair.pause_owner();
  worker& owner = *pair.owner;
  memory_region owned = pair.allocate(shared_size);
  fill_pattern(owned.bytes(), 3);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(1000);
  for (int round = 0; round < 2; ++round) {  // one that was stopped is driven again
    std::promise<std::thread::id> driver;
    owner.post([&] { driver.set_value(std::this_thread::get_id()); });
    std::jthread driving([&](const std::stop_token& stop) { owner.run(stop); });
    EXPECT_EQ(driver.get_future().get(), driving.get_id());
    region.read_at(1000, into);
    EXPECT_TRUE(holds_pattern(into, 3, 1000));
    std::this_thread::sleep_for(20ms);  // asleep by now: both have to wake it
    region.write_at(0, into);
    region.flush();
    const auto begin = std::chrono::steady_clock::now();
    driving.request_stop();
    driving.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    EXPECT_TRUE(holds_pattern(owned.bytes().first(1000), 3, 1000));
    fill_pattern(owned.bytes().first(1000), 3);
  }
  bool ran = false;
  owner.post([&] { ran = true; });
  std::stop_source stopped;
  stopped.request_stop();
  owner.run(stopped.get_token());  // returns at once
  owner.progress();
  EXPECT_TRUE(ran);
  worker driven(*pair.owner_context, {.progress = progress_mode::sleeping_thread});
  EXPECT_THROW(driven.run(std::stop_token()), error) << "it has a thread of its own";
  pair.resume_owner();  // closing asks it
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceERun,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener,
                                         route::shared_memory),
                         [](const auto& chosen) { return to_string(chosen.param); });

// Waiting without turning round and round: the worker looks a few times, and sleeps.
TEST(ConformanceELoops, E10_WaitsSleepUntilSomethingHappens) {
  pair_options chosen;
  chosen.owner = progress_mode::external;
  connected_pair pair(chosen);
  memory_region owned = pair.allocate(shared_size);
  remote_region region = pair.open(owned);
  fill_pattern(owned.bytes(), 4);
  std::atomic<std::uint64_t> rounds{0};
  scheduled_call counting = pair.reader().call_in_progress(
      progress_phase::before, repetition::every_round, [&] { ++rounds; });
  pair.pause_owner();
  std::vector<std::byte> into(1000);
  request read = region.start_read_at(0, into);
  EXPECT_FALSE(read.wait_for(100ms));
  const std::uint64_t before = rounds;
  EXPECT_FALSE(read.wait_for(200ms));
  // Some thousands before each sleep, of which there are a few; spinning makes hundreds of
  // thousands.
  EXPECT_LT(rounds - before, 50'000U) << "it did not sleep";
  pair.resume_owner();
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 4));
}

TEST(ConformanceELoops, E13_ThreadsBeginWithTheUsersFunction) {
  std::promise<std::thread::id> started;
  const context over(context_options_for(route::tcp_by_address));
  worker_options options;
  options.progress = progress_mode::sleeping_thread;
  options.on_thread_start = [&] { started.set_value(std::this_thread::get_id()); };
  worker driven(over, options);
  const std::thread::id began = started.get_future().get();
  std::promise<std::thread::id> ran;
  driven.post([&] { ran.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(ran.get_future().get(), began);
}

TEST(ConformanceELoops, E4_HandlersThatThrowAreReported) {
  std::atomic<int> reports{0};
  pair_options chosen;
  chosen.reader = progress_mode::sleeping_thread;
  chosen.reader_defaults.on_exception = [&](std::exception_ptr) { ++reports; };
  connected_pair pair(chosen);
  const memory_region owned = pair.allocate(shared_size);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(1000);
  pair.reader().post([] { throw std::runtime_error("in a posted function"); });
  const scheduled_call timer =
      pair.reader().call_after(1ms, [] { throw std::runtime_error("in a timer"); });
  EXPECT_TRUE(pair.drive_until([&] { return reports == 2; }));
  region.read_at(0, into);
}

fire read_twice(remote_region& region, std::span<std::byte> into, std::atomic<int>& done) {
  co_await region.start_read_at(0, into);
  ++done;
  try {
    co_await region.start_read_at(shared_size, into);
  } catch (const error& failed) {
    if (failed.code() == errc::out_of_range) ++done;
  }
}

TEST(ConformanceELoops, E19_CoroutinesAwaitRequests) {
  connected_pair pair;
  const memory_region owned = pair.allocate(shared_size);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(1000);
  std::atomic<int> done{0};
  read_twice(region, into, done);
  EXPECT_TRUE(pair.drive_until([&] { return done == 2; }));
}

fire receive_one(worker& by, std::span<std::byte> into, message_info& received,
                 std::atomic<bool>& done) {
  received = co_await by.start_receive(8, into);
  done = true;
}

TEST(ConformanceELoops, E5_E19_FuturesTellWhatWasReceived) {
  std::vector<std::byte> into(100);
  message_info awaited;
  std::atomic<bool> done{false};
  connected_pair pair;  // goes first, and what waits in it
  std::future<message_info> future = pair.owner->start_receive(7, into).to_future();
  receive_one(*pair.owner, into, awaited, done);
  std::future<message_info> sent = pair.connection->start_send(7, pattern(60)).to_future();
  ASSERT_TRUE(pair.drive_until([&] {
    return future.wait_for(0s) == std::future_status::ready &&
           sent.wait_for(0s) == std::future_status::ready;
  }));
  pair.connection->send(8, pattern(100));
  EXPECT_TRUE(pair.drive_until([&] { return done.load(); }));
  EXPECT_EQ(future.get(), (message_info{.tag = 7, .length = 60}));
  EXPECT_EQ(sent.get(), message_info());
  EXPECT_EQ(awaited, (message_info{.tag = 8, .length = 100}));
}

TEST(ConformanceELoops, E21_OptionsAreNamedAndHaveDefaults) {
  const context over(over_network());
  const worker owner(over, {.progress = progress_mode::sleeping_thread, .spin = 0us});
  const memory_region owned = memory_region::allocate(over, 4096, access::read);
  worker reader(over, {.operation_timeout = 40s});
  const endpoint connection(reader, owner.address());
  remote_region region(connection, owned.descriptor(),
                       {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(10);
  region.start_read_at(0, into, {.timeout = 30s}).wait();
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
}

TEST(ConformanceELoops, E14_FunctionsAreQueuedToTheProgressThread) {
  pair_options chosen;
  chosen.reader = progress_mode::polling_thread;
  connected_pair pair(chosen);
  const memory_region owned = pair.allocate(shared_size);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(1000);
  std::promise<std::error_code> outcome;
  std::optional<request> read;
  pair.reader().post([&] {
    read = region.start_read_at(0, into);
    read->then([&](std::error_code ec) { outcome.set_value(ec); });
  });
  EXPECT_FALSE(outcome.get_future().get());
}

}  // namespace
}  // namespace ucx::test
