// Operations that are done at once, and tasks of the thread that drives.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/sanitizer.hpp"
#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/replaced/replaced_new.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/driven_task.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<bool> next_one_fails{false};
}  // namespace

bool may_allocate() noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return !next_one_fails.exchange(false, std::memory_order_relaxed);
}

namespace {

using namespace std::chrono_literals;

simulated_pair_options mapped() {
  simulated_pair_options options;
  options.shares_memory = true;
  options.link.shared_memory = true;
  return options;
}

/// Reads again and again: each completion starts the next.
class read_loop {
 public:
  read_loop(remote_region& region, std::uint64_t rounds) : region_(region), left_(rounds) {
    told_.then = [this] { next(); };
  }
  void next() {
    note_stack();
    if (left_ == 0) return;
    --left_;
    state_.emplace(region_, into_, told_);
    state_->state.start();
  }
  std::uint64_t left() const noexcept { return left_; }
  std::uintptr_t stack() const noexcept { return highest_ - lowest_; }

 private:
  using sender = decltype(async_read_at(std::declval<remote_region&>(), 0, std::span<std::byte>()));
  struct in_place_state {
    in_place_state(remote_region& region, std::vector<std::byte>& into, record& told)
        : state(async_read_at(region, 0, into).connect(recorder(told))) {}
    recorded<sender> state;
  };
  void note_stack() noexcept {
    const char here = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(&here);
    lowest_ = std::min(lowest_, at);
    highest_ = std::max(highest_, at);
  }

  remote_region& region_;
  std::uint64_t left_;
  std::vector<std::byte> into_ = std::vector<std::byte>(8);
  record told_;
  std::optional<in_place_state> state_;
  std::uintptr_t lowest_ = UINTPTR_MAX;
  std::uintptr_t highest_ = 0;
};

TEST(InlineCompletion, OfAMillionMappedReadsTakesConstantStack) {
  remote_memory memory(std::string(100, 'x'), mapped());
  ASSERT_EQ(memory.region.transfer_method(), transfer_method::mapped);
  read_loop loop(memory.region, 1'000'000);
  loop.next();
  for (int i = 0; i < 1'000'000 && loop.left() > 0; ++i) memory.pair.reader.progress();
  EXPECT_EQ(loop.left(), 0U);
#if !defined(UCXIO_WITH_ASAN)  // whose frames lie in memory of its own
  EXPECT_LT(loop.stack(), std::uintptr_t{128} << 10U);
#endif
}

TEST(InlineCompletion, GoesThroughTheWorkerAfter64) {
  remote_memory memory(std::string(100, 'x'), mapped());
  read_loop loop(memory.region, 1000);
  loop.next();
  EXPECT_EQ(loop.left(), 1000U - 65U);  // the 65th has begun, and waits for a round
  const std::uint64_t before = loop.left();
  memory.pair.reader.progress();
  EXPECT_LT(loop.left(), before);
  EXPECT_GE(loop.left(), before - 65U);
  while (loop.left() > 0) memory.pair.reader.progress();
}

/// Returns how many allocations `rounds` calls of `operation` took, after as many before.
template <class Operation>
std::uint64_t allocations_of(int rounds, Operation operation) {
  for (int round = 0; round < rounds; ++round) operation();
  const std::uint64_t before = allocations.load();
  for (int round = 0; round < rounds; ++round) operation();
  return allocations.load() - before;
}

TEST(InlineCompletion, AllocatesNothing) {
  remote_memory memory(std::string(100, 'x'), mapped());
  EXPECT_EQ(allocations_of(10,
                           [&] {
                             std::byte into[8];
                             sync_wait(memory.pair.reader, async_read_at(memory.region, 0, into));
                           }),
            0U);
}

/// Returns how many allocations states took that were started, and driven, one after the other.
template <class Sender>
std::uint64_t allocations_of_states(simulated_pair& pair, const Sender& sender, completion how) {
  const std::stop_source never;
  record told;
  const std::uint64_t made = allocations_of(100, [&] {
    told.calls = 0;
    auto state = sender.connect(recorder(told, never.get_token()));
    state.start();
    while (told.calls == 0) pair.reader.progress();
  });
  EXPECT_EQ(told.how, how);
  return made;
}

TEST(InlineCompletion, AllocatesNothingOfStatesWithAToken) {
  remote_memory memory(std::string(100, 'x'), mapped());
  simulated_pair& pair = memory.pair;
  std::byte into[8];
  const worker_scheduler scheduler(pair.reader);
  EXPECT_EQ(allocations_of_states(pair, async_read_at(memory.region, 0, into), completion::value),
            0U);
  EXPECT_EQ(allocations_of_states(pair, scheduler.schedule(), completion::value), 0U);
  EXPECT_EQ(allocations_of_states(pair, scheduler.schedule_after(0ms), completion::value), 0U);
}

TEST(InlineCompletion, TellsThatTheHandlerLacksMemory) {
  simulated_messages both;
  std::stop_source stop;
  std::byte into[8];
  std::deque<record> told;
  const auto sender = async_start(both.receiver(), [&] {
    request begun = both.receiver().start_receive(7, into);
    next_one_fails = true;  // of the place for the handler, once there is none left
    return begun;
  });
  std::deque<std::unique_ptr<recorded<decltype(sender)>>> states;
  bool was_short = false;
  for (int i = 0; i < 10'000 && !was_short; ++i) {
    states.emplace_back(new recorded<decltype(sender)>(
        sender.connect(recorder(told.emplace_back(), stop.get_token()))));
    states.back()->start();
    was_short = !next_one_fails.exchange(false);
  }
  ASSERT_TRUE(was_short);
  EXPECT_EQ(told.back().calls, 1);
  EXPECT_EQ(told.back().how, completion::error);
  EXPECT_EQ(told.back().code, errc::no_memory);
  // The others are under way until they are stopped.
  stop.request_stop();
  while (both.receiver().progress()) {
  }
  for (const record& each : told) EXPECT_EQ(each.calls, 1);
}

struct task : detail::driven_task {
  using driven_task::post;
  using driven_task::withdraw;
  void call(bool worker_ends) noexcept override {
    ++calls;
    at_end = worker_ends;
    if (then) then();
  }
  int calls = 0;
  bool at_end = false;
  std::function<void()> then = {};
};

TEST(DrivenTask, IsCalledInTheNextRoundOncePerPost) {
  simulated_pair pair;
  task one;
  task other;
  const auto tasks = detail::tasks_of(pair.reader);
  ASSERT_TRUE(one.post(tasks));
  ASSERT_TRUE(other.post(tasks));
  EXPECT_EQ(one.calls, 0);
  other.withdraw();
  pair.reader.progress();
  EXPECT_EQ(one.calls, 1);
  EXPECT_FALSE(one.at_end);
  EXPECT_EQ(other.calls, 0);
  pair.reader.progress();
  EXPECT_EQ(one.calls, 1);
}

TEST(DrivenTask, PostedByATaskWaitsForAnotherRound) {
  simulated_pair pair;
  task again;
  const auto tasks = detail::tasks_of(pair.reader);
  again.then = [&] {
    if (again.calls < 3) again.post(tasks);
  };
  again.post(tasks);
  for (int i = 1; i <= 3; ++i) {
    pair.reader.progress();
    EXPECT_EQ(again.calls, i);
  }
}

TEST(DrivenTask, AllocatesNothing) {
  simulated_pair pair;
  task one;
  const auto tasks = detail::tasks_of(pair.reader);
  EXPECT_EQ(allocations_of(10,
                           [&] {
                             one.post(tasks);
                             pair.reader.progress();
                           }),
            0U);
}

TEST(DrivenTask, IsToldOfTheWorkersEndAndRefusedBehindIt) {
  simulated_pair pair;
  std::optional<worker> ended(std::in_place, pair.reader_context);
  const auto tasks = detail::tasks_of(*ended);
  task left;
  ASSERT_TRUE(left.post(tasks));
  ended.reset();
  EXPECT_EQ(left.calls, 1);
  EXPECT_TRUE(left.at_end);
  EXPECT_FALSE(left.post(tasks));
  left.withdraw();
  EXPECT_EQ(left.calls, 1);
}

TEST(DrivenTask, OfHandlesThatAreEmptyIsNowhere) {
  EXPECT_FALSE(detail::tasks_of(remote_region()));
  EXPECT_FALSE(detail::tasks_of(request()));
}

}  // namespace
}  // namespace ucx::test
