// Whatever is dropped first, with operations in flight, and wherever it is dropped: nothing hangs,
// nothing is touched after its end (AddressSanitizer looks), and every operation ends once.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Waits for another thread.
class Lifetime : public testing::TestWithParam<pair_options> {
 protected:
  static pair_options impatient(pair_options options) {
    options.reader_defaults.close_timeout = 200ms;
    options.reader_defaults.heartbeat_interval = 50ms;
    options.reader_defaults.heartbeat_timeout = 10s;
    return options;
  }
  /// To whom an owner that is silent for a second is dead.
  static pair_options suspicious(pair_options options) {
    options = impatient(std::move(options));
    options.reader_defaults.heartbeat_timeout = patience(1s);
    return options;
  }
};

/// Everything that a reader has, with operations in flight: `ends` counts those that have ended.
struct reader_side {
  reader_side(connected_pair& pair, const remote_descriptor& descriptor,
              const pair_options& options, std::atomic<int>& ends)
      : parent(std::in_place, context_options_for(options.over)) {
    worker_options how = patient(options.reader_defaults);
    how.progress = options.reader;
    driven.emplace(*parent, how);
    if (pair.door) {
      connection.emplace(*driven, pair.door->address());
    } else {
      connection.emplace(*driven, pair.address());
    }
    region.emplace(*connection, descriptor, answered_by_the_owner());
    for (int i = 0; i < 20; ++i) {
      reads.push_back(region->start_read_at(0, into));
      reads.back().then([&ends](std::error_code) { ++ends; });
      writes.push_back(region->start_write_at(into.size(), from));
    }
    flush.emplace(region->start_flush());
  }

  std::vector<std::byte> into = std::vector<std::byte>(300'000);
  std::vector<std::byte> from = std::vector<std::byte>(300'000);
  std::optional<context> parent;
  std::optional<worker> driven;
  std::optional<endpoint> connection;
  std::optional<remote_region> region;
  std::vector<request> reads;
  std::vector<request> writes;
  std::optional<request> flush;
};

TEST_P(Lifetime, OfAReadersObjectsEndsInAnyOrder) {
  connected_pair pair(impatient(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  std::vector<int> order{0, 1, 2, 3, 4};
  int number = 0;
  do {
    if (number++ % 5 != 0) continue;  // 24 of the 120 are enough, and take seconds
    SCOPED_TRACE(testing::PrintToString(order));
    std::atomic<int> ends{0};
    {
      reader_side side(pair, owned.descriptor(), impatient(GetParam()), ends);
      for (const int which : order) {
        if (which == 0) side.parent.reset();
        if (which == 1) side.driven.reset();
        if (which == 2) side.connection.reset();
        if (which == 3) side.region.reset();
        if (which == 4) {
          side.reads.clear();
          side.writes.clear();
          side.flush.reset();
        }
      }
    }
    ASSERT_TRUE(soon([&] { return ends == 20; })) << ends << " of 20 reads have ended";
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(Lifetime, OfReadersEndsInAnyOrderAtASilentOwner) {
  connected_pair pair(impatient(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  remote_region region = pair.open(owned);
  const std::vector<std::vector<int>> orders{
      {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 3, 4, 1, 0}, {3, 2, 1, 0, 4}, {1, 4, 2, 0, 3}};
  std::vector<std::byte> into(8);
  for (const std::vector<int>& order : orders) {
    SCOPED_TRACE(testing::PrintToString(order));
    std::atomic<int> ends{0};
    {
      // Connected while the owner listens.
      reader_side side(pair, owned.descriptor(), suspicious(GetParam()), ends);
      side.connection->wait_connected();
      side.reads.clear();
      side.writes.clear();
      side.flush.reset();
      const std::vector<std::byte> much(32U << 20U);
      memory_region large = pair.allocate(much.size());
      remote_region large_region(*side.connection, large.descriptor(), answered_by_the_owner());
      pair.pause_owner();
      request stuck = large_region.start_write_at(0, much);
      request read = side.region->start_read_at(0, into);
      const clock::time_point begin = clock::now();
      for (const int which : order) {
        if (which == 0) side.parent.reset();
        if (which == 1) side.driven.reset();
        if (which == 2) side.connection.reset();
        if (which == 3) side.region.reset();
        if (which == 4) {
          stuck = request();
          read = request();
        }
      }
      EXPECT_LT(clock::now() - begin, patience(15s));
    }
    pair.resume_owner();
  }
  region.read_at(0, into);
}

TEST_P(Lifetime, OfAnOwnersObjectsEndsInAnyOrder) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    SCOPED_TRACE(testing::PrintToString(order));
    pair_options options = impatient(GetParam());
    options.over = route::tcp_by_listener;
    options.owner = progress_mode::sleeping_thread;
    // So long does withdrawing a region wait for a reader that nobody drives.
    options.owner_defaults.heartbeat_timeout = patience(300ms);
    connected_pair pair(options);
    std::optional<memory_region> owned = pair.allocate(1U << 20U);
    remote_region region = pair.open(*owned);
    std::vector<std::byte> into(300'000);
    std::vector<request> reads;
    for (int i = 0; i < 20; ++i) reads.push_back(region.start_read_at(0, into));
    for (const int which : order) {
      if (which == 0) owned.reset();
      if (which == 1) pair.owner_context.reset();
      if (which == 2) pair.owner.reset();
      if (which == 3) pair.door.reset();
    }
    for (request& read : reads) {
      std::error_code ec;
      ASSERT_TRUE(read.wait_for(patience(20s)));
      read.wait(ec);
      EXPECT_TRUE(!ec || ec == errc::revoked || ec == errc::connection_reset) << ec;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(Lifetime, OfTheConnectionGoesOnForWhatWasStarted) {
  connected_pair pair(impatient(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  fill_pattern(owned.bytes());
  std::vector<std::byte> into(400'000);
  std::optional<remote_region> region = pair.open(owned);
  pair.connection.reset();
  request read = region->start_read_at(5, into);
  region.reset();
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 0, 5));
}

TEST_P(Lifetime, OfEverythingMayEndInsideAHandler) {
  connected_pair pair(impatient(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  for (int round = 0; round < effort(10, 3); ++round) {
    std::atomic<int> ends{0};
    std::atomic<bool> called{false};
    std::vector<std::byte> into(100);
    auto side =
        std::make_unique<reader_side>(pair, owned.descriptor(), impatient(GetParam()), ends);
    // In mode `caller` somebody has to drive the worker, by what the handler does not drop.
    std::optional<remote_region> driver;
    if (GetParam().reader == progress_mode::caller) driver = side->region->share();
    side->reads.front() = side->region->start_read_at(0, std::span(side->into).first(8));
    side->reads.front().then([&](std::error_code) {
      side.reset();  // and with it the very request whose handler this is
      called = true;
    });
    for (const auto until = clock::now() + patience(20s); !called && clock::now() < until;) {
      if (driver) {
        driver->read_at(0, into);
      } else {
        std::this_thread::sleep_for(1ms);
      }
    }
    ASSERT_TRUE(called);
  }
}

TEST_P(Lifetime, OfAConnectionMayEndInItsErrorHandler) {
  connected_pair pair(suspicious(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  auto doomed = std::make_unique<std::optional<endpoint>>();
  std::atomic<int> outcome{0};
  endpoint_options options;
  options.events.on_closed = [&](const connection_end& end) {
    const int why = end.reason.value();
    doomed.reset();
    outcome = why;  // last: then the test goes on, and ends `doomed` itself
  };
  doomed->emplace(pair.connect(std::move(options)));
  remote_region region(**doomed, owned.descriptor(), answered_by_the_owner());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  pair.pause_owner();
  std::vector<request> reads;
  for (int i = 0; i < 300; ++i) reads.push_back(region.start_read_at(0, into));
  EXPECT_TRUE(pair.drive_until([&] { return outcome != 0; })) << "the heartbeat notices";
  EXPECT_EQ(outcome, static_cast<int>(errc::connection_reset));
  for (request& read : reads) {
    std::error_code ec;
    read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
  pair.resume_owner();
}

TEST_P(Lifetime, OfAnAbortedConnectionLeavesOthersAlone) {
  connected_pair pair(impatient(GetParam()));
  memory_region owned = pair.allocate(1U << 20U);
  fill_pattern(owned.bytes());
  remote_region region = pair.open(owned);
  for (int round = 0; round < effort(20, 4); ++round) {
    endpoint other = pair.connect();
    remote_region other_region(other, owned.descriptor(), answered_by_the_owner());
    std::vector<std::byte> into(500'000);
    std::vector<std::byte> kept(500'000);
    request read = other_region.start_read_at(0, into);
    request write = other_region.start_write_at(0, std::span(into).first(0));
    request good = region.start_read_at(1, kept);
    other.close(close_mode::abort);
    std::error_code ec;
    read.wait(ec);
    EXPECT_TRUE(!ec || ec == errc::canceled) << ec;
    good.wait();
    ASSERT_TRUE(holds_pattern(kept, 0, 1));
  }
}

/// Returns how many descriptors this process has open.
int open_files() {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST_P(Lifetime, OfAConnectionEndsAtTheOwnerToo) {
  for (const route over : {route::tcp_by_address, route::tcp_by_listener}) {
    for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
      SCOPED_TRACE(to_string(over) + (mode == close_mode::abort ? ", aborted" : ", flushed"));
      pair_options options = impatient(GetParam());
      options.over = over;
      options.owner_defaults.heartbeat_interval = 50ms;  // how long it waits for who said goodbye
      connected_pair pair(options);
      memory_region owned = pair.allocate(4096);
      std::vector<std::byte> into(8);
      const auto once = [&] {
        endpoint made = pair.connect();
        remote_region region(made, owned.descriptor());
        region.read_at(0, into);
        made.close(mode);
      };
      once();
      const int before = open_files();
      for (int i = 0; i < effort(30, 6); ++i) once();
      // Both ends are in this process; a connection that is left over has two descriptors.
      EXPECT_TRUE(pair.drive_until([&] { return open_files() <= before + 2; }))
          << open_files() - before << " descriptors more than before";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Messages, Lifetime,
                         testing::ValuesIn(message_pairs(route::tcp_by_listener)), name_of_pair);

/// Returns how many threads this process has.
std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(WorkerLifetime, MayEndOnTheWorkersOwnThread) {
  std::thread([] {}).join();  // ThreadSanitizer starts one of its own with the first
  const std::ptrdiff_t before = threads();
  for (const progress_mode mode : {progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    SCOPED_TRACE(mode);
    for (int round = 0; round < effort(5, 2); ++round) {
      std::optional<context> parent(std::in_place, context_options_for(route::tcp_by_address));
      auto driven = std::make_unique<worker>(*parent, worker_options{.progress = mode});
      parent.reset();
      std::atomic<bool> called{false};
      worker& last = *driven;
      last.post([&called, driven = std::move(driven)]() mutable {
        driven.reset();
        called = true;
      });
      EXPECT_TRUE(soon([&] { return called.load(); }));
    }
  }
  EXPECT_TRUE(soon([&] { return threads() <= before; })) << "threads left to themselves end";
}

TEST(WorkerLifetime, LeavesNothingToAHandlerThatStillRuns) {
  for (const progress_mode mode : {progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    SCOPED_TRACE(mode);
    std::optional<context> parent(std::in_place, context_options_for(route::tcp_by_address));
    std::optional<worker> owner(std::in_place, *parent, worker_options{.progress = mode});
    std::optional<worker> driven(std::in_place, *parent, worker_options{.progress = mode});
    parent.reset();
    const worker_address address = owner->address();
    std::atomic<bool> called{false};
    std::atomic<bool> over{false};
    endpoint connection(*driven, address);
    connection.wait_connected();
    // Who uses a worker keeps it.
    driven->post([&, connection = std::move(connection)]() mutable {
      called = true;
      std::this_thread::sleep_for(50ms);
      { const endpoint last = std::move(connection); }
      over = true;
    });
    EXPECT_TRUE(soon([&] { return called.load(); }));
    driven.reset();
    EXPECT_TRUE(over) << "its end waits for what the worker's thread does";
  }
}

TEST(WorkerLifetimeDeathTest, ProcessEndsBehindAWorkersThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const progress_mode mode : {progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    SCOPED_TRACE(mode);
    const auto leave = [&] {
      std::optional<context> parent(std::in_place, context_options_for(route::tcp_by_address));
      auto driven = std::make_unique<worker>(*parent, worker_options{.progress = mode});
      parent.reset();
      std::atomic<bool> called{false};
      struct slow {
        ~slow() {
          std::this_thread::sleep_for(100ms);
          std::fputs("destroyed\n", stderr);
        }
      };
      worker& last = *driven;
      // What is posted last is destroyed with the worker.
      last.post([&, driven = std::move(driven)]() mutable {
        driven->post([kept = std::make_unique<slow>()] {});
        driven.reset();
        called = true;
        std::this_thread::sleep_for(50ms);  // the process may end before this handler has
      });
      while (!called) std::this_thread::sleep_for(1ms);
      std::exit(0);
    };
    EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "destroyed");
  }
}

TEST(WorkerLifetime, EndsWithPeersConnected) {
  for (int round = 0; round < effort(10, 3); ++round) {
    pair_options options;
    options.reader = progress_mode::sleeping_thread;
    options.over = round % 2 == 0 ? route::tcp_by_address : route::tcp_by_listener;
    connected_pair pair(options);
    memory_region owned = pair.allocate(1U << 20U);
    remote_region region = pair.open(owned);
    std::vector<std::byte> into(1U << 20U);
    std::vector<request> reads;
    for (int i = 0; i < 8; ++i) reads.push_back(region.start_read_at(0, into));
    pair.door.reset();
    pair.owner.reset();
    std::error_code ec;
    for (request& read : reads) {
      ASSERT_TRUE(read.wait_for(patience(20s)));
      EXPECT_TRUE(!read.error() || read.error() == errc::connection_reset) << read.error();
    }
    region.read_at(0, into, {}, ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
}

}  // namespace
}  // namespace ucx::test
