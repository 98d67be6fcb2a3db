#include "base/disk_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

TEST(DiskThread, AnswersInOrder) {
  std::vector<int> answered;
  {
    disk_thread disk(100, [](disk_queue::answer answer) { answer(); });
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(disk.queue()->start([&answered, i] {
        return disk_queue::answer([&answered, i] { answered.push_back(i); });
      }));
    }
  }  // does what waits
  ASSERT_EQ(answered.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(answered[static_cast<std::size_t>(i)], i);
}

TEST(DiskThread, IsNotWaitedForWhereItIsIdle) {
  disk_thread disk(100, [](disk_queue::answer answer) { answer(); });
  std::promise<void> done;
  ASSERT_TRUE(
      disk.queue()->start([&done] { return disk_queue::answer([&done] { done.set_value(); }); }));
  done.get_future().wait();
  const auto until = std::chrono::steady_clock::now() + 100s;
  disk.stop(until);
  EXPECT_LT(std::chrono::steady_clock::now(), until);
}

TEST(DiskThread, TakesNoMoreThanItsMost) {
  std::promise<void> disk_answers;
  std::shared_future<void> answers(disk_answers.get_future());
  std::promise<void> began;
  disk_thread disk(2, [](disk_queue::answer answer) { answer(); });
  EXPECT_TRUE(disk.queue()->start([&began, answers] {
    began.set_value();
    answers.wait();
    return disk_queue::answer();
  }));
  began.get_future().wait();
  const auto nothing = [] { return disk_queue::answer(); };
  EXPECT_TRUE(disk.queue()->start(nothing));
  EXPECT_TRUE(disk.queue()->start(nothing));
  EXPECT_FALSE(disk.queue()->start(nothing));
  EXPECT_TRUE(disk.queue()->start_always(nothing));
  disk_answers.set_value();
}

TEST(DiskThread, DoesWhatNobodyWaitsForSoon) {
  disk_thread disk(10, [](const disk_queue::answer& answer) { answer(); });
  std::atomic<int> done{0};
  const auto count = [&done] {
    ++done;
    return disk_queue::answer();
  };
  const auto until = std::chrono::steady_clock::now() + 20s;
  disk.queue()->start_some_time(count);
  while (done < 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(done, 1);
  for (int i = 0; i < 200; ++i) disk.queue()->start_some_time(count);
  std::promise<void> behind;
  disk.queue()->start_always([&behind] {
    behind.set_value();
    return disk_queue::answer();
  });
  behind.get_future().wait();
  EXPECT_EQ(done, 201);
}

TEST(DiskThread, TellsAnAnswerWhenThereIsMemoryForIt) {
  int refused = 0;
  std::vector<int> told;
  disk_thread disk(10, [&](disk_queue::answer& answer) {
    if (++refused % 3 != 0) throw std::bad_alloc();
    answer();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(disk.queue()->start(
        [&told, i] { return disk_queue::answer([&told, i] { told.push_back(i); }); }));
  }
  disk.stop(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  EXPECT_EQ(told, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(refused, 9);
}

TEST(DiskThread, IsLeftBehindWhereTheDiskHangs) {
  const auto disk_answers = std::make_shared<std::promise<void>>();
  auto over = std::make_shared<std::promise<std::thread::id>>();
  std::future<std::thread::id> ended = over->get_future();
  std::atomic<int> delivered{0};
  std::atomic<int> done{0};
  std::shared_ptr<disk_queue> left;
  const auto begin = std::chrono::steady_clock::now();
  {
    disk_thread disk(10, [&](const disk_queue::answer&) { ++delivered; });
    left = disk.queue();
    disk.queue()->start([disk_answers] {
      disk_answers->get_future().wait();
      return disk_queue::answer([] {});
    });
    // Is destroyed, and not done, where the disk's thread is.
    const std::shared_ptr<int> behind(new int, [over](const int* gone) {
      delete gone;
      over->set_value(std::this_thread::get_id());
    });
    disk.queue()->start([behind, &done] {
      ++done;
      return disk_queue::answer();
    });
    disk.stop(begin + 50ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_FALSE(left->start([] { return disk_queue::answer(); }));
  EXPECT_EQ(ended.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(left->start_some_time([] { return disk_queue::answer(); }));
  disk_answers->set_value();
  ASSERT_EQ(ended.wait_for(20s), std::future_status::ready);
  EXPECT_NE(ended.get(), std::this_thread::get_id());
  EXPECT_EQ(delivered, 0);
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace ucx::detail
