#include "detail/worker_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace ucx::detail {
namespace {

class WorkerLock : public testing::TestWithParam<worker_lock::between> {};

INSTANTIATE_TEST_SUITE_P(Between, WorkerLock,
                         testing::Values(worker_lock::between::threads,
                                         worker_lock::between::visitors));

TEST_P(WorkerLock, IsTakenAgainByItsHolder) {
  worker_lock lock(GetParam());
  const std::lock_guard outer(lock);
  EXPECT_TRUE(lock.is_outermost());
  {
    const std::lock_guard inner(lock);
    EXPECT_FALSE(lock.is_outermost());
  }
  EXPECT_TRUE(lock.is_outermost());
}

TEST_P(WorkerLock, KeepsOthersOutUntilTheLastHoldGoes) {
  worker_lock lock(GetParam());
  std::atomic<bool> in{false};
  lock.lock();
  lock.lock();
  std::jthread other([&] {
    const std::lock_guard guard(lock);
    in = true;
  });
  lock.unlock();
  // Long enough that it looks less often.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(in);
  lock.unlock();
  other.join();
  EXPECT_TRUE(in);
}

TEST_P(WorkerLock, KeepsThreadsApart) {
  worker_lock lock(GetParam());
  constexpr int rounds = 2000;
  int plain = 0;  // which the lock guards
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          lock.let_others_in();
          const std::lock_guard guard(lock);
          const std::lock_guard again(lock);
          ++plain;
        }
      });
    }
  }
  EXPECT_EQ(plain, 3 * rounds);
}

}  // namespace
}  // namespace ucx::detail
