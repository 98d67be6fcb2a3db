#include "worker/waiting_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "worker/operation.hpp"

namespace ucx::detail {
namespace {

/// An operation that only has an address.
class waited_operation final : public operation {
 public:
  void give_up(errc /*why*/) noexcept override {}
  void connection_failed(std::error_code /*why*/) noexcept override {}
  std::string describe() const override { return {}; }

 private:
  void recycle() noexcept override {}
};

/// A thread that sleeps until it is woken; a test that loses it ends after a while.
class sleeping_thread {
 public:
  sleeping_thread(waiting_threads& among, const operation* waited) {
    thread_ = std::thread([this, &among, waited] {
      among.sleep(waited, clock::now() + std::chrono::seconds(60),
                  [this] { return asked_ = true; });
      woken_ = true;
    });
    // It asks with the lock that it gives back when it sleeps.
    while (!asked_) std::this_thread::yield();
  }
  ~sleeping_thread() {
    if (thread_.joinable()) thread_.join();
  }
  void join() { thread_.join(); }
  bool woken() const { return woken_; }

 private:
  std::atomic<bool> asked_{false};
  std::atomic<bool> woken_{false};
  std::thread thread_;
};

TEST(WaitingThreads, AreWokenByWhatTheyWaitFor) {
  waiting_threads waiting;
  waited_operation one;
  waited_operation other;
  const clock::time_point begin = clock::now();
  sleeping_thread for_other(waiting, &other);
  {
    sleeping_thread for_one(waiting, &one);
    sleeping_thread for_anything(waiting, nullptr);
    waiting.wake_for(one);
    for_one.join();
    for_anything.join();
  }
  EXPECT_FALSE(for_other.woken());
  waiting.wake_for_anything();
  EXPECT_FALSE(for_other.woken());
  waiting.wake_for(other);
  for_other.join();
  EXPECT_TRUE(for_other.woken());
  EXPECT_LT(clock::now() - begin, std::chrono::seconds(60));
}

TEST(WaitingThreads, AreWokenOneByOneToSeeToWhatNobodySeesTo) {
  waiting_threads waiting;
  waited_operation one;
  waited_operation other;
  const clock::time_point begin = clock::now();
  sleeping_thread first(waiting, &one);
  sleeping_thread second(waiting, &other);
  waiting.wake_one();
  first.join();
  EXPECT_FALSE(second.woken());
  waiting.wake_one();
  second.join();
  waiting.wake_one();  // nobody
  EXPECT_LT(clock::now() - begin, std::chrono::seconds(60));
}

TEST(WaitingThreads, AreNotCalledTwiceWhereAnotherOneSleeps) {
  waiting_threads waiting;
  waited_operation one;
  const clock::time_point begin = clock::now();
  sleeping_thread first(waiting, &one);
  sleeping_thread second(waiting, &one);
  // Both before either of them can have left.
  waiting.wake_one();
  waiting.wake_one();
  first.join();
  second.join();
  EXPECT_LT(clock::now() - begin, std::chrono::seconds(60));
}

TEST(WaitingThreads, DoNotSleepUnlessTheyMay) {
  waiting_threads waiting;
  waiting.sleep(nullptr, clock::time_point::max(), [] { return false; });
  waiting.wake_for_anything();
}

TEST(WaitingThreads, SleepUntilTheirTimeAtMost) {
  waiting_threads waiting;
  const clock::time_point until = clock::now() + std::chrono::milliseconds(5);
  waiting.sleep(nullptr, until, [] { return true; });
  EXPECT_GE(clock::now(), until);
}

}  // namespace
}  // namespace ucx::detail
