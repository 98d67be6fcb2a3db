// Users' handlers: in order, one at a time, and never under a lock of ours.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

/// Returns whether another thread gets the lock of `asked` while this one is where it is.
bool is_unlocked(worker& asked) {
  detail::worker_lock& lock = detail::core_access::core(asked)->lock();
  std::promise<void> got;
  std::jthread other([&] {
    const std::lock_guard held(lock);
    got.set_value();
  });
  const bool at_once = got.get_future().wait_for(30s) == std::future_status::ready;
  EXPECT_TRUE(at_once);
  if (!at_once) std::abort();  // the other thread would never end
  return at_once;
}

TEST(Handler, RunsWithoutTheWorkersLock) {
  served_region served(1000);
  std::vector<std::byte> into(100);
  int ran = 0;
  const auto look = [&] { ran += is_unlocked(served.pair.reader) ? 1 : 0; };
  request read = served.region.start_read_at(0, into);
  read.then([&](std::error_code) { look(); });
  read.wait();
  served.pair.reader.progress();
  EXPECT_EQ(ran, 1);
  served.pair.reader.post(look);
  served.pair.reader.progress();
  EXPECT_EQ(ran, 2);
  request given_up = served.region.start_read_at(0, into);
  given_up.then([&](std::error_code) { look(); });
  given_up.cancel();
  EXPECT_EQ(ran, 3);
}

TEST(Handler, OfALossRunsWithoutTheWorkersLock) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  peer.welcome_everybody();
  int ran = 0;
  endpoint_options options;
  options.events.on_closed = [&](const connection_end&) {
    ran += is_unlocked(pair.reader) ? 1 : 0;
  };
  endpoint connection(pair.reader, peer.its_address(), std::move(options));
  connection.wait_connected();
  frame bye;
  bye.code = opcode::bye;
  bye.session = peer.guest_session;
  peer.say(peer.guest, bye);
  pair.network.advance(3s);
  EXPECT_EQ(ran, 1);
}

TEST(Handler, RunsInTheOrderInWhichThingsHappened) {
  served_region served(1000);
  std::vector<std::byte> into(100);
  std::vector<int> order;
  request first = served.region.start_read_at(0, into);
  request second = served.region.start_read_at(0, into);
  request third = served.region.start_read_at(0, into);
  second.then([&](std::error_code) { order.push_back(2); });
  third.then([&](std::error_code) { order.push_back(3); });
  first.then([&](std::error_code) {
    order.push_back(1);
    second.cancel();  // its handler waits until this one is over
    third.cancel();
    served.pair.reader.post([&] { order.push_back(4); });
    order.push_back(1);
  });
  first.cancel();
  for (int round = 0; round < 10; ++round) served.pair.reader.progress();
  EXPECT_EQ(order, (std::vector{1, 1, 2, 3, 4}));
}

TEST(Handler, ProgressInsideRunsNoOther) {
  simulated_pair pair;
  std::vector<int> order;
  pair.reader.post([&] {
    order.push_back(1);
    pair.reader.post([&] { order.push_back(3); });
    pair.reader.progress();
    order.push_back(2);
  });
  for (int round = 0; round < 5; ++round) pair.reader.progress();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(Handler, MayDropTheWorkerThatRunsIt) {
  simulated_pair pair;
  {
    worker driven(pair.reader_context);
    auto doomed = std::make_unique<worker>(pair.reader_context);
    worker& last = *doomed;
    last.post([&] { doomed.reset(); });
    last.progress();
    EXPECT_EQ(doomed, nullptr);
  }
}

TEST(Handler, IsLeftToTheThreadThatRunsOne) {
  simulated_pair_options options;
  options.link.time = time_mode::real;
  options.reader_worker.thread_mode = thread_mode::multi;
  simulated_pair pair(options);
  pair.reader_process.on_pump({});
  pair.owner_process.on_pump({});
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  std::vector<int> order;  // not synchronised by us: the handlers are
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    pair.reader.post([&, i] {
      if (inside.fetch_add(1) != 0) overlapped = true;
      order.push_back(i);
      inside.fetch_sub(1);
    });
    if (i == rounds / 2) pair.reader.progress();
  }
  std::atomic<bool> done{false};
  pair.reader.post([&] { done = true; });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (!done) {
          pair.reader.progress();
          pair.reader.post([] {});
        }
      });
    }
  }
  EXPECT_FALSE(overlapped);
  ASSERT_EQ(order.size(), std::size_t{rounds});
  for (int i = 0; i < rounds; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Handler, OfAListenerIsOverWhenTheListenerIs) {
  simulated_pair_options options;
  options.link.time = time_mode::real;
  options.owner_worker.progress = progress_mode::sleeping_thread;
  options.reader_worker.progress = progress_mode::sleeping_thread;
  simulated_pair pair(options);
  std::promise<void> entered;
  bool left = false;
  auto door = std::make_unique<listener>(pair.owner, socket_address("127.0.0.1:0"),
                                         [&](connection_request) {
                                           entered.set_value();
                                           std::this_thread::sleep_for(50ms);
                                           left = true;
                                         });
  std::jthread knocks([&, address = door->address()] {
    std::error_code refused;
    const endpoint none(pair.reader, address, {}, refused);
    EXPECT_TRUE(refused);
  });
  entered.get_future().wait();
  door.reset();
  EXPECT_TRUE(left);
}

TEST(Handler, MayStartWhatAnotherWorkersHandlerWaitsFor) {
  // Two workers with threads, whose handlers start reads by the other one.
  simulated_pair_options options;
  options.link.time = time_mode::real;
  options.link.latency = 1us;
  options.reader_worker.progress = progress_mode::sleeping_thread;
  options.owner_worker.progress = progress_mode::sleeping_thread;
  served_region served(1000, options);
  memory_region mirror(served.pair.reader_context, std::span<std::byte>(served.memory),
                       access::read);
  endpoint back(served.pair.owner, served.pair.reader.address());
  remote_region reversed(back, mirror.descriptor());
  remote_region* const regions[] = {&served.region, &reversed};
  std::recursive_mutex users;  // taken around starting, and inside of handlers
  std::deque<std::vector<std::byte>> intos;
  std::deque<request> reads;
  int left = effort(4000);
  int running = 2;
  std::promise<void> over;
  // The handler on one worker's thread starts the next read by the other worker.
  const std::function<void(std::size_t)> next = [&](std::size_t which) {
    const std::lock_guard guard(users);
    if (--left < 0) {
      if (--running == 0) over.set_value();
      return;
    }
    const std::size_t other = 1 - which;
    request& read = reads.emplace_back(regions[other]->start_read_at(0, intos.emplace_back(8)));
    read.then([&, other](std::error_code ec) {
      EXPECT_FALSE(ec);
      next(other);
    });
  };
  next(0);
  next(1);
  const bool in_time = over.get_future().wait_for(200s) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  if (!in_time) std::abort();  // nothing here could be destroyed
}

TEST(Worker, TwoSilentPeersAreBothDeadInTime) {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1h;
  simulated_pair pair(options);
  std::vector<std::unique_ptr<frame_peer>> peers;
  std::vector<endpoint> connections;
  std::vector<request> flushes;
  std::vector<std::byte> memory(100);
  const memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  std::vector<remote_region> regions;
  std::vector<request> reads;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<frame_peer>(pair.network, "peer"));
    peers.back()->welcome_everybody();
    connections.emplace_back(pair.reader, peers.back()->its_address());
    connections.back().wait_connected();
    regions.emplace_back(connections.back(), exposed.descriptor());
  }
  const auto begin = pair.network.now();
  for (remote_region& region : regions) reads.push_back(region.start_read_at(0, memory));
  for (request& read : reads) {
    std::error_code ec;
    read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
    EXPECT_LE(pair.network.now() - begin, 5s + 10ms);
  }
}

TEST(Worker, TakesTheLongestDurationsThereAre) {
  constexpr std::chrono::nanoseconds longest = std::chrono::nanoseconds::max();
  simulated_pair_options options;
  for (worker_options* each : {&options.owner_worker, &options.reader_worker}) {
    each->connect_timeout = longest;
    each->operation_timeout = longest;
    each->close_timeout = longest;
    each->heartbeat_interval = longest;
    each->heartbeat_timeout = longest;
  }
  served_region served(1000, options);
  std::vector<std::byte> into(1000);
  request read = served.region.start_read_at(0, into, {.timeout = longest});
  EXPECT_TRUE(read.wait_for(longest));
  EXPECT_FALSE(read.error());
  EXPECT_TRUE(holds_pattern(into));
  request write = served.region.start_write_at(0, into);
  write.cancel();
  std::error_code ec;
  write.wait(ec);
  served.region.flush({}, ec);
  served.connection.close();
  endpoint_options patient;
  patient.connect_timeout = longest;
  endpoint again = served.pair.connect(std::move(patient));
  again.wait_connected();
}

TEST(Worker, ZeroDurationsAreDefaults) {
  simulated_pair_options options;
  options.reader_worker = {.spin = 0ns,
                           .connect_timeout = 0ns,
                           .operation_timeout = 0ns,
                           .close_timeout = 0ns,
                           .heartbeat_interval = 0ns,
                           .heartbeat_timeout = 0ns};
  served_region served(1000, options);
  std::vector<std::byte> into(1000);
  served.region.read_at(0, into);
  served.pair.owner_process.stop();
  const auto begin = served.network().now();
  std::error_code ec;
  served.region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_GE(served.network().now() - begin, 4s);
  EXPECT_LE(served.network().now() - begin, 6s);
  served.pair.owner_process.resume();
}

TEST(Worker, WakesItsSleepingThreadForWorkOfOurs) {
  simulated_pair_options options;
  options.link.time = time_mode::real;
  options.reader_worker.progress = progress_mode::sleeping_thread;
  simulated_pair pair(options);
  detail::worker_core& core = *detail::core_access::core(pair.reader);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(5ms);
    std::promise<void> ran;
    {
      const std::lock_guard guard(core.lock());
      core.defer([&] { ran.set_value(); });
    }
    ASSERT_EQ(ran.get_future().wait_for(30s), std::future_status::ready);
  }
}

/// An owner whose answers get stuck, on two workers of one context.
simulated_pair_options stuck() {
  simulated_pair_options options;
  options.link.socket_buffer = 64U << 10U;
  options.reader_worker.operation_timeout = 1h;
  options.reader_worker.heartbeat_timeout = 1h;
  return options;
}

TEST(Worker, RunsNoHandlerWhereARegionIsClosed) {
  served_region served(8U << 20U, stuck());
  served.connection.wait_connected();
  std::vector<std::byte> into(8U << 20U);
  request read = served.region.start_read_at(0, into);
  served.network().advance(1ms);
  served.pair.reader_process.stop();
  for (int round = 0; round < 100; ++round) served.pair.owner.progress();
  bool ran = false;
  served.pair.owner.post([&] { ran = true; });
  const auto begin = served.network().now();
  served.exposed.close();
  EXPECT_FALSE(ran);
  EXPECT_GE(served.network().now() - begin, 4900ms);
  EXPECT_LE(served.network().now() - begin, 6s);
  served.pair.owner.progress();
  EXPECT_TRUE(ran);
  served.pair.reader_process.resume();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST(Worker, OfSeveralThatServeARegionAllGetTheSameTime) {
  served_region served(8U << 20U, stuck());
  worker second(served.pair.owner_context);
  served.pair.owner_process.on_pump([&] {
    served.pair.owner.progress();
    second.progress();
  });
  {
    endpoint other(served.pair.reader, second.address());
    remote_region by_other(other, served.exposed.descriptor());
    served.connection.wait_connected();
    other.wait_connected();
    std::vector<std::byte> into(8U << 20U);
    std::vector<std::byte> as_well(8U << 20U);
    request first_read = served.region.start_read_at(0, into);
    request second_read = by_other.start_read_at(0, as_well);
    served.network().advance(1ms);
    served.pair.reader_process.stop();
    for (int round = 0; round < 100; ++round) {
      served.pair.owner.progress();
      second.progress();
    }
    const auto begin = served.network().now();
    served.exposed.close();
    EXPECT_GE(served.network().now() - begin, 4900ms);
    EXPECT_LE(served.network().now() - begin, 6s);
    served.pair.reader_process.resume();
    std::error_code ec;
    first_read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
    second_read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
  served.pair.owner_process.on_pump([&] { served.pair.owner.progress(); });
}

TEST(Session, ThatAnotherPeerHasIsRefusedAsBusy) {
  simulated_pair pair;
  frame_peer first(pair.network, "first");
  frame_peer second(pair.network, "second");
  ASSERT_TRUE(first.open_session(first.reach(pair.owner.address()), 5));
  const ucp_ep_h to = second.reach(pair.owner.address());
  frame hello;
  hello.code = opcode::hello;
  hello.session = 5;
  second.say(to, hello, second.its_address().encode());
  frame_peer::heard_frame answer;
  ASSERT_TRUE(second.await(opcode::welcome, answer));
  EXPECT_EQ(answer.said.session, 5U);
  EXPECT_EQ(detail::status_error(answer.said.status), errc::busy);
  EXPECT_TRUE(second.open_session(to, 6));
}

TEST(Session, IsDrawnAgainWhereThePeerHasIt) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  endpoint connection(pair.reader, peer.its_address());
  frame_peer::heard_frame hello;
  ASSERT_TRUE(peer.await(opcode::hello, hello));
  const ucp_ep_h back = peer.reach(hello.address());
  frame answer;
  answer.code = opcode::welcome;
  std::uint64_t last = 0;
  for (int refusals = 0; refusals < 3; ++refusals) {
    EXPECT_NE(hello.said.session, last);
    last = hello.said.session;
    answer.session = last;
    answer.status = detail::error_status(errc::busy);
    peer.say(back, answer);
    ASSERT_TRUE(peer.await(opcode::hello, hello));
  }
  answer.session = hello.said.session;
  answer.status = 0;
  peer.say(back, answer);
  connection.wait_connected();
  EXPECT_FALSE(connection.status());
}

TEST(Session, IsDrawnFourTimesAtMost) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  endpoint connection(pair.reader, peer.its_address());
  ucp_ep_h back = nullptr;
  for (int hellos = 0; hellos < 4; ++hellos) {
    frame_peer::heard_frame hello;
    ASSERT_TRUE(peer.await(opcode::hello, hello));
    if (back == nullptr) back = peer.reach(hello.address());
    frame answer;
    answer.code = opcode::welcome;
    answer.session = hello.said.session;
    answer.status = detail::error_status(errc::busy);
    peer.say(back, answer);
  }
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::busy);
}

}  // namespace
}  // namespace ucx::test
