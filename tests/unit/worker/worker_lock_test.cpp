#include "worker/worker_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"

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

TEST_P(WorkerLock, KnowsItsHolder) {
  worker_lock lock(GetParam());
  EXPECT_FALSE(lock.is_mine());
  {
    const std::lock_guard guard(lock);
    EXPECT_TRUE(lock.is_mine());
    if (GetParam() == worker_lock::between::visitors) {
      std::thread([&] { EXPECT_FALSE(lock.is_mine()); }).join();
    }
  }
  EXPECT_FALSE(lock.is_mine());
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
  // Long enough that it sleeps.
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

// It waits for so long that it sleeps; and who has woken it may be in again before it has looked.
// So few visits make no visitor the user.
TEST_P(WorkerLock, WakesWhoSleeps) {
  constexpr int rounds = 5;
  for (int i = 0; i < 20; ++i) {
    worker_lock lock(GetParam());
    std::atomic<int> held{0};
    std::atomic<int> got{0};
    { const std::lock_guard guard(lock); }  // by the user
    std::jthread visitor([&] {
      for (int round = 0; round < rounds; ++round) {
        while (held == round) std::this_thread::yield();
        const std::lock_guard guard(lock);
        ++got;
      }
    });
    for (int round = 0; round < rounds; ++round) {
      {
        const std::lock_guard guard(lock);
        held = round + 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        EXPECT_EQ(got, round);
      }
      const bool returns = i % 2 == 1;
      EXPECT_TRUE(test::soon([&] {
        if (returns) const std::lock_guard guard(lock);
        return got > round;
      }));
    }
  }
}

// One thread after the other is the user, more often than there may be users; others visit all the
// time.
TEST_P(WorkerLock, HasOneUserAfterTheOther) {
  worker_lock lock(GetParam());
  constexpr int users = 20;
  constexpr int rounds = 3000;
  std::atomic<bool> over{false};
  int plain = 0;
  std::atomic<int> visits{0};
  std::jthread visitor([&] {
    while (!over) {
      {
        const std::lock_guard guard(lock);
        ++plain;
        ++visits;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (int user = 0; user < users; ++user) {
    std::thread([&] {
      for (int round = 0; round < rounds; ++round) {
        lock.let_others_in();
        const std::lock_guard guard(lock);
        ++plain;
        const std::lock_guard again(lock);
        EXPECT_FALSE(lock.is_outermost());
      }
    }).join();
  }
  over = true;
  visitor.join();
  EXPECT_EQ(plain, users * rounds + visits);
}

// Nothing but the lock keeps what they do apart, on two cores, and in a hurry.
TEST_P(WorkerLock, KeepsAVisitorApartFromAUserInAHurry) {
  worker_lock lock(GetParam());
  std::atomic<bool> over{false};
  std::array<volatile int, 16> plain = {};
  const auto change = [&] {
    const std::lock_guard guard(lock);
    for (volatile int& each : plain) each = each + 1;
  };
  change();  // by the user
  std::atomic<int> changes{1};
  std::jthread visitor([&] {
    for (int visit = 0; visit < 3000; ++visit) {
      change();
      ++changes;
      std::this_thread::yield();
    }
    over = true;
  });
  while (!over) {
    lock.let_others_in();
    change();
    ++changes;
  }
  visitor.join();
  for (const volatile int& each : plain) EXPECT_EQ(each, changes);
}

}  // namespace
}  // namespace ucx::detail
