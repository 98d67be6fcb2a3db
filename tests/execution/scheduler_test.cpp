#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/driven_task.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(WorkerScheduler, CompletesInTheNextRound) {
  simulated_pair pair;
  record told;
  auto state = worker_scheduler(pair.reader).schedule().connect(recorder(told));
  state.start();
  EXPECT_EQ(told.calls, 0);
  pair.reader.progress();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::value);
  EXPECT_TRUE(sync_wait(pair.reader, worker_scheduler(pair.reader).schedule()));
}

TEST(WorkerScheduler, CompletesAtItsTimeAndNotBefore) {
  simulated_pair pair;
  const worker_scheduler scheduler(pair.reader);
  const auto begin = pair.network.now();
  EXPECT_TRUE(sync_wait(pair.reader, scheduler.schedule_after(250ms)));
  EXPECT_GE(pair.network.now() - begin, 250ms);
  EXPECT_LT(pair.network.now() - begin, 255ms);
  EXPECT_TRUE(sync_wait(pair.reader, scheduler.schedule_at(begin + 400ms)));
  EXPECT_GE(pair.network.now() - begin, 400ms);
  EXPECT_LT(pair.network.now() - begin, 405ms);
}

TEST(WorkerScheduler, KeepsTheOrderOfManyTimes) {
  simulated_pair pair;
  const worker_scheduler scheduler(pair.reader);
  using sender = decltype(scheduler.schedule_after(0ms));
  struct timer {
    timer(const sender& when, std::vector<int>& order, int number)
        : told(), state(when.connect(recorder(told))) {
      told.then = [&order, number] { order.push_back(number); };
      state.start();
    }
    record told;
    recorded<sender> state;
  };
  std::vector<int> order;
  std::deque<timer> timers;
  std::vector<int> expected;
  constexpr int many = 101;  // a prime: the delays are all those from 1 to 100 times 10 ms
  for (int i = 1; i < many; ++i) {
    const int delay = i * 37 % many;
    timers.emplace_back(scheduler.schedule_after(delay * 10ms), order, delay);
    expected.push_back(i);
  }
  EXPECT_TRUE(pair.network.run_until([&] { return order.size() == expected.size(); }));
  EXPECT_EQ(order, expected);
}

TEST(WorkerScheduler, IsStoppedBeforeItsStart) {
  simulated_pair pair;
  record told;
  std::stop_source stop;
  stop.request_stop();
  auto state = worker_scheduler(pair.reader).schedule().connect(recorder(told, stop.get_token()));
  state.start();
  EXPECT_EQ(told.how, completion::stopped);
}

TEST(WorkerScheduler, IsStoppedByAnotherThreadLongBeforeItsTime) {
  simulated_pair pair;
  record told;
  std::stop_source stop;
  auto state =
      worker_scheduler(pair.reader).schedule_after(24h).connect(recorder(told, stop.get_token()));
  state.start();
  pair.reader.progress();
  std::thread([&] { stop.request_stop(); }).join();
  EXPECT_EQ(told.calls, 0);
  pair.reader.progress();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::stopped);
}

TEST(WorkerScheduler, IsStoppedByTheWorkersEnd) {
  simulated_pair pair;
  std::optional<worker> ended(std::in_place, pair.reader_context);
  const worker_scheduler scheduler(*ended);
  record now;
  record later;
  record behind;
  auto first = scheduler.schedule().connect(recorder(now));
  auto second = scheduler.schedule_after(1h).connect(recorder(later));
  first.start();
  second.start();
  ended.reset();
  EXPECT_EQ(now.how, completion::stopped);
  EXPECT_EQ(later.how, completion::stopped);
  auto third = scheduler.schedule().connect(recorder(behind));
  third.start();
  EXPECT_EQ(behind.how, completion::stopped);
}

TEST(WorkerScheduler, TellsItsWorkerAndItsGuarantee) {
  simulated_pair pair;
  const worker_scheduler scheduler(pair.reader);
  EXPECT_TRUE(scheduler == worker_scheduler(pair.reader));
  EXPECT_FALSE(scheduler == worker_scheduler(pair.owner));
  EXPECT_TRUE(scheduler.schedule().get_env().query(
                  execution::get_completion_scheduler_t<execution::set_value_t>()) == scheduler);
  EXPECT_EQ(scheduler.query(execution::get_forward_progress_guarantee_t()),
            execution::forward_progress_guarantee::weakly_parallel);
}

TEST(DrivenTask, IsTakenOutOfTheTimers) {
  simulated_pair pair;
  struct task : detail::driven_task {
    void call(bool) noexcept override { ++calls; }
    int calls = 0;
  };
  std::deque<task> tasks(20);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].attach(detail::tasks_of(pair.reader));
    ASSERT_TRUE(tasks[i].post_after(std::chrono::milliseconds(10 * (i * 7 % 20 + 1))));
  }
  for (std::size_t i = 0; i < tasks.size(); i += 2) tasks[i].withdraw();
  pair.network.advance(1s);
  for (std::size_t i = 0; i < tasks.size(); ++i) EXPECT_EQ(tasks[i].calls, i % 2 == 0 ? 0 : 1) << i;
}

}  // namespace
}  // namespace ucx::test
