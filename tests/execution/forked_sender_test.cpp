// Senders in a child of fork(), of what it has of its parent's: none succeeds, and none hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/process/forked_child.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/driven_task.hpp"
#include "ucx/error.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

/// Starts it; returns the code of its error, if that is how it ended at once.
template <class Sender>
std::error_code error_at_once(Sender sender, std::stop_token stop = {}) {
  record told;
  auto state = std::move(sender).connect(recorder(told, std::move(stop)));
  state.start();
  if (told.calls != 1 || told.how != completion::error) return {};
  if (!told.thrown) return told.code;
  try {
    std::rethrow_exception(told.thrown);
  } catch (const error& thrown) {
    return thrown.code();
  }
}

TEST(ForkedSender, OfARequestOfTheParentsFails) {
  simulated_messages both;
  std::vector<std::vector<std::byte>> into(5, blank(10));
  const auto receive = [&](std::size_t i) { return both.receiver().start_receive(7, into[i]); };
  request first = receive(0);
  request second = receive(1);
  request third = receive(2);
  request fourth = receive(3);
  const std::stop_source never;
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(status_of_child([&](faults_of_child& child) {
              child.unless_inherited(error_at_once(as_sender(std::move(first))), "by code");
              child.unless_inherited(error_at_once(with_text(as_sender(std::move(second)))),
                                     "with text");
              child.unless_inherited(error_at_once(as_sender(std::move(third)), never.get_token()),
                                     "with a token");
              child.unless_inherited(
                  error_at_once(as_sender(std::move(fourth)), before.get_token()), "stopped");
              child.unless_inherited(
                  error_at_once(async_start(both.receiver(), [&] { return receive(4); })),
                  "started there");
              child.unless_inherited_thrown(
                  "waiting", [&] { sync_wait(both.receiver(), as_sender(request())); });
            }),
            0);
}

/// A task that another thread runs while the process forks.
struct lasting_task : detail::driven_task {
  void call(bool) noexcept override {
    has_begun = true;
    while (!may_end) std::this_thread::yield();
  }
  std::atomic<bool> has_begun{false};
  std::atomic<bool> may_end{false};
};

TEST(ForkedSender, WaitsForNoThreadThatIsNotThere) {
  simulated_messages both;
  lasting_task task;
  lasting_task other;
  const auto tasks = detail::tasks_of(both.receiver());
  ASSERT_TRUE(task.post(tasks));
  std::thread driving([&] { both.receiver().progress(); });
  while (!task.has_begun) std::this_thread::yield();
  EXPECT_EQ(status_of_child([&](faults_of_child& child) {
              task.withdraw();
              child.unless(!other.post(tasks), "a task was taken");
              other.withdraw();
            }),
            0);
  task.may_end = true;
  driving.join();
}

}  // namespace
}  // namespace ucx::test
