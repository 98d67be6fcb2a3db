// One worker without a thread of its own, used by several threads at once.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class SharedWorker : public testing::TestWithParam<route> {
 protected:
  static pair_options options() {
    pair_options made;
    made.over = GetParam();
    made.reader_defaults.thread_mode = thread_mode::multi;
    // A wake-up that was lost would show as an operation that takes as long as this.
    made.reader_defaults.heartbeat_interval = 30s;
    made.reader_defaults.heartbeat_timeout = 60s;
    return made;
  }

  connected_pair pair_{options()};
  memory_region owned_ = pair_.allocate(1U << 20U);
};

TEST_P(SharedWorker, ServesEightThreadsThatWait) {
  fill_pattern(owned_.bytes());
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  std::atomic<int> handled{0};
  std::atomic<int> right{0};
  std::atomic<clock::duration::rep> longest{0};
  constexpr int rounds = 400;
  {
    std::vector<std::jthread> threads;
    for (std::size_t which = 0; which < 8; ++which) {
      threads.emplace_back([&, which] {
        remote_region region = pair_.open(owned_);
        for (std::size_t round = 0; round < rounds; ++round) {
          std::vector<std::byte> into(round % 50 == 0 ? 300'000 : 100);
          const std::uint64_t offset = which * 1000 + round;
          const clock::time_point begin = clock::now();
          request read = region.start_read_at(offset, into);
          std::atomic<bool> told{false};
          // What has ended by now is handled at once, on this thread and beside the others'
          // handlers.
          bool in_then = true;
          read.then([&, self = std::this_thread::get_id()](std::error_code ec) {
            const bool at_once = std::this_thread::get_id() == self && in_then;
            if (!at_once && inside.fetch_add(1) != 0) overlapped = true;
            if (!ec) ++handled;
            if (!at_once) inside.fetch_sub(1);
            told = true;
          });
          in_then = false;
          std::error_code ec;
          read.wait(ec);
          if (!ec && holds_pattern(into, 0, offset)) ++right;
          while (!told) pair_.reader().progress();
          const auto took = (clock::now() - begin).count();
          auto most = longest.load();
          while (took > most && !longest.compare_exchange_weak(most, took)) {
          }
        }
      });
    }
  }
  EXPECT_EQ(right, 8 * rounds);
  EXPECT_EQ(handled, 8 * rounds);
  EXPECT_FALSE(overlapped);
  EXPECT_LT(clock::duration(longest), 20s);
}

TEST_P(SharedWorker, StartsOperationsWhileItsDriverSleeps) {
  remote_region region = pair_.open(owned_);
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  // Nothing of the sleeper's own comes before it is told to stop.
  std::stop_source stop;
  std::jthread sleeper([&] { pair_.reader().run(stop.get_token()); });
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(30ms);  // it spins for some milliseconds first
    const clock::time_point begin = clock::now();
    request read = region.start_read_at(0, into);
    std::atomic<bool> handled{false};
    read.then([&](std::error_code) { handled = true; });
    if (round % 2 == 0) read.wait();
    while (!handled && clock::now() - begin < 25s) std::this_thread::yield();
    ASSERT_TRUE(handled);
    EXPECT_LT(clock::now() - begin, 20s);
  }
  // A failure, too, is told by the one that sleeps.
  std::this_thread::sleep_for(30ms);
  const clock::time_point begin = clock::now();
  request given_up = region.start_read_at(0, into);
  std::atomic<bool> handled{false};
  given_up.then([&](std::error_code) { handled = true; });
  given_up.cancel();
  while (!handled && clock::now() - begin < 25s) std::this_thread::yield();
  EXPECT_TRUE(handled);
  EXPECT_LT(clock::now() - begin, 20s);
  stop.request_stop();
}

INSTANTIATE_TEST_SUITE_P(Routes, SharedWorker,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener),
                         [](const auto& chosen) { return to_string(chosen.param); });

}  // namespace
}  // namespace ucx::test
