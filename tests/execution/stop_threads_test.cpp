// Stops from other threads, and workers that have a thread. Over real transports.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/driven_task.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

/// How often the operations of a race have ended in each way.
struct ends {
  int values = 0;
  int errors = 0;
  int stops = 0;
};

/// As `connected_pair::drive_until`, without sleeps where this thread drives.
bool drive_until_told(connected_pair& pair, const record& told) {
  if (pair.options.reader != progress_mode::caller) {
    return pair.drive_until([&] { return told.calls > 0; });
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (told.calls == 0) {
    if (pair.reader().progress()) continue;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// One state of any operation of a race.
template <class Sender>
void start_and_drive(connected_pair& pair, const Sender& sender, std::stop_token stop,
                     std::atomic<std::size_t>& announced, std::size_t index, ends& counted) {
  record told;
  auto state = sender.connect(recorder(told, std::move(stop)));
  if (index % 2 == 0) announced = index + 1;
  state.start();
  if (index % 2 != 0) announced = index + 1;
  EXPECT_TRUE(drive_until_told(pair, told));
  EXPECT_EQ(told.calls, 1);
  if (told.how == completion::value) ++counted.values;
  if (told.how == completion::error) ++counted.errors;
  if (told.how == completion::stopped) ++counted.stops;
}

constexpr std::size_t batch = 1000;

/// Starts a batch of reads one after the other, while another thread stops all but each tenth. The
/// first operation is a receive of a message that does not come: it ends by its stop alone.
void race(connected_pair& pair, remote_region& region, ends& counted) {
  std::vector<std::stop_source> sources(batch);
  std::atomic<std::size_t> announced{0};
  const std::jthread stopping([&](const std::stop_token& given_up) {
    for (std::size_t i = 0; i < batch; ++i) {
      while (announced <= i && !given_up.stop_requested()) std::this_thread::yield();
      if (i % 10 != 9) sources[i].request_stop();
    }
  });
  std::vector<std::byte> into(64);
  start_and_drive(pair, async_receive(pair.reader(), 7, into), sources[0].get_token(), announced, 0,
                  counted);
  for (std::size_t i = 1; i < batch && !testing::Test::HasFailure(); ++i) {
    start_and_drive(pair, async_read_at(region, 0, into), sources[i].get_token(), announced, i,
                    counted);
  }
}

void expect_all(const ends& counted, int batches) {
  EXPECT_EQ(counted.errors, 0);
  EXPECT_EQ(counted.values + counted.stops, batches * static_cast<int>(batch));
  EXPECT_GE(counted.values, batches * 100);
  EXPECT_GE(counted.stops, batches);
}

TEST(StopOfASender, MeetsItsCompletionAHundredThousandTimes) {
  connected_pair pair({.over = route::loopback, .owner = progress_mode::caller});
  const memory_region owned = pair.allocate(64);
  remote_region region = pair.open(owned);
  ends counted;
  for (int i = 0; i < 100; ++i) race(pair, region, counted);
  expect_all(counted, 100);
}

TEST(StopOfASender, IsSeenByAWorkerWithAThread) {
  for (const progress_mode mode : {progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    SCOPED_TRACE(name_of(mode));
    connected_pair pair({.over = route::tcp_by_address, .reader = mode});
    const memory_region owned = pair.allocate(64);
    remote_region region = pair.open(owned);
    ends counted;
    race(pair, region, counted);
    expect_all(counted, 1);
  }
}

/// Returns whether a thread of this process sleeps in the system.
bool is_asleep(::pid_t thread) {
  std::ifstream told("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(told, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends != std::string::npos && line.substr(name_ends, 3) == ") S";
}
/// Returns whether it held before a limit that only a hang reaches.
template <class Condition>
bool holds_in_time(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Ends what a thread waits for, but not before that thread sleeps.
struct late_end : detail::driven_task {
  void call(bool) noexcept override {
    begin();
    EXPECT_TRUE(holds_in_time([&] { return waiting != 0 && is_asleep(waiting); }));
    ended = true;
  }
  std::function<void()> begin = {};
  std::atomic<::pid_t> waiting{0};
  std::atomic<bool> ended{false};
};

// The thread that cancels runs the tasks that are queued, as a round does.
TEST(SyncWait, IsWokenByATaskThatACancelOfAnotherThreadRan) {
  context here(context_options_for(route::tcp_by_address));
  worker_options options;
  options.thread_mode = thread_mode::multi;
  options.spin = std::chrono::nanoseconds(1);
  worker shared(here, options);
  std::vector<std::byte> into(8);
  late_end task;
  request unrelated = shared.start_receive(7, into);
  shared.progress();
  std::atomic<bool> returned{false};
  std::jthread waiting;
  // Inside the cancel the other thread begins to wait.
  task.begin = [&] {
    waiting = std::jthread([&] {
      task.waiting = ::gettid();
      detail::drive_until(shared, task.ended);
      returned = true;
    });
  };
  ASSERT_TRUE(task.post(detail::tasks_of(shared)));
  unrelated.cancel();
  EXPECT_TRUE(task.ended);
  EXPECT_TRUE(holds_in_time([&] { return returned.load(); }));
  shared.post([] {});  // wakes what was not woken
}

TEST(SyncWait, WaitsForTheThreadOfAWorkerThatHasOne) {
  for (const progress_mode mode :
       {progress_mode::polling_thread, progress_mode::sleeping_thread, progress_mode::caller}) {
    connected_pair pair({.over = route::tcp_by_address, .reader = mode});
    const memory_region owned = pair.allocate(1000);
    remote_region region = pair.open(owned);
    std::vector<std::byte> into(1000);
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(sync_wait(pair.reader(), async_read_at(region, 0, into))) << name_of(mode);
    }
  }
}

}  // namespace
}  // namespace ucx::test
