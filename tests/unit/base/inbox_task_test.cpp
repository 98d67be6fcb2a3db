#include "base/inbox_task.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "support/replaced/short_memory.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

class counted_work final : public detail::inbox_task {
 public:
  counted_work(int number, std::vector<int>& ran) : number_(number), ran_(ran) {}
  void run(detail::worker_core& by) override {
    if (std::exchange(lacks_memory, false)) throw std::bad_alloc();
    ran_.push_back(number_);
    if (next) by.hand_over(std::move(next));
  }

  std::shared_ptr<inbox_task> next;  ///< Is handed over then.
  bool lacks_memory = false;         ///< Once.

 private:
  const int number_;
  std::vector<int>& ran_;
};

TEST(HandedQueue, ServesInOrderAndIsOfUseAgain) {
  std::vector<int> ran;
  detail::inbox_tasks queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  for (int round = 0; round < 2; ++round) {
    const auto first = std::make_shared<counted_work>(1, ran);
    const auto second = std::make_shared<counted_work>(2, ran);
    queue.push(first);
    queue.push(second);
    EXPECT_FALSE(queue.empty());
    detail::inbox_tasks moved = std::move(queue);
    EXPECT_EQ(moved.pop(), first);
    EXPECT_EQ(moved.pop(), second);
    EXPECT_TRUE(moved.empty());
    moved.push(first);  // it is in no queue any more
    EXPECT_EQ(moved.pop(), first);
  }
}

TEST(HandedQueue, EndsWithAsManyAsThereAre) {
  std::vector<int> ran;
  std::weak_ptr<counted_work> last;
  {
    detail::inbox_tasks queue;
    for (int i = 0; i < 300'000; ++i) {
      auto work = std::make_shared<counted_work>(i, ran);
      last = work;
      queue.push(std::move(work));
    }
  }
  EXPECT_TRUE(last.expired());
  EXPECT_TRUE(ran.empty());
}

TEST(HandedWork, NeedsNoMemoryOnItsWayToTheWorker) {
  simulated_pair pair;
  detail::worker_core& core = *detail::core_access::core(pair.reader);
  std::vector<int> ran;
  std::thread([&] {
    const auto first = std::make_shared<counted_work>(1, ran);
    const auto second = std::make_shared<counted_work>(2, ran);
    allocations_until_failure = 0;
    core.hand_over(first);
    core.hand_over(second);
    EXPECT_EQ(allocations_until_failure, 0) << "it has asked for memory";
    allocations_until_failure = -1;
  }).join();
  EXPECT_TRUE(ran.empty());
  pair.reader.progress();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(HandedWork, ThatComesMeanwhileIsForTheNextRound) {
  simulated_pair pair;
  detail::worker_core& core = *detail::core_access::core(pair.reader);
  std::vector<int> ran;
  const auto first = std::make_shared<counted_work>(1, ran);
  first->next = std::make_shared<counted_work>(2, ran);
  core.hand_over(first);
  pair.reader.progress();
  EXPECT_EQ(ran, (std::vector<int>{1}));
  pair.reader.progress();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(HandedWork, ThatLacksMemoryIsTriedAgainAndKeepsNothingElseWaiting) {
  simulated_pair pair;
  detail::worker_core& core = *detail::core_access::core(pair.reader);
  std::vector<int> ran;
  const auto lacking = std::make_shared<counted_work>(0, ran);
  lacking->lacks_memory = true;
  core.hand_over(lacking);
  core.hand_over(std::make_shared<counted_work>(1, ran));
  EXPECT_THROW(pair.reader.progress(), std::bad_alloc);
  EXPECT_EQ(ran, (std::vector<int>{1}));
  core.hand_over(std::make_shared<counted_work>(2, ran));
  pair.reader.progress();
  EXPECT_EQ(ran, (std::vector<int>{1, 0, 2})) << "before what came behind it";
  pair.reader.progress();
  EXPECT_EQ(ran.size(), 3U) << "once";
}

TEST(HandedWork, EndsWithTheWorker) {
  std::vector<int> ran;
  auto work = std::make_shared<counted_work>(1, ran);
  const std::weak_ptr<counted_work> left = work;
  {
    simulated_pair pair;
    detail::core_access::core(pair.reader)->hand_over(std::move(work));
  }
  EXPECT_TRUE(left.expired());
  EXPECT_TRUE(ran.empty());
}

}  // namespace
}  // namespace ucx::test
