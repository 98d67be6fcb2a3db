#include "base/forked_child.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <mutex>

#include "base/one_per_process.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {
namespace {

/// Returns the status of a child that does this. One that hangs is ended.
int status_of_forked(const std::function<int()>& work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

struct inheritable {
  bool is_inherited() const noexcept { return made.is_inherited(); }
  ~inheritable() { ++destroyed; }
  const process_stamp made = {};
  static inline int destroyed = 0;
};

TEST(ProcessStamp, IsInheritedInEachChildAndNotWhereItWasMade) {
  const counted_context any(false);
  const process_stamp made;
  EXPECT_FALSE(made.is_inherited());
  EXPECT_EQ(status_of_forked([&] {
              const process_stamp own;
              if (!made.is_inherited() || own.is_inherited()) return 1;
              return status_of_forked([&] {
                const process_stamp youngest;
                return made.is_inherited() && own.is_inherited() && !youngest.is_inherited() ? 0
                                                                                             : 2;
              });
            }),
            0);
  EXPECT_FALSE(made.is_inherited());
}

TEST(ProcessStamp, IsTheChildsWhereThereWasNoContext) {
  const process_stamp made;
  EXPECT_EQ(status_of_forked([&] { return made.is_inherited() ? 1 : 0; }), 0);
}

TEST(LeaveToParent, TakesWhatIsInheritedAndDestroysNothing) {
  const counted_context any(false);
  auto held = std::make_shared<inheritable>();
  auto beside = std::make_shared<inheritable>();
  std::shared_ptr<inheritable> none;
  EXPECT_FALSE(leave_to_parent(held, beside));
  EXPECT_FALSE(leave_to_parent(none));
  EXPECT_TRUE(held && beside);
  EXPECT_EQ(status_of_forked([&] {
              auto own = std::make_shared<inheritable>();
              if (leave_to_parent(own) || !own) return 1;
              if (!leave_to_parent(held, beside) || held || beside) return 2;
              return inheritable::destroyed;
            }),
            0);
}

TEST(CountedContext, ForbidsContextsOfUcxToChildren) {
  EXPECT_EQ(status_of_forked([] { return lost_ucx_by_fork() || is_forked_child() ? 1 : 0; }), 0);
  {
    const counted_context over_sockets(false);
    EXPECT_EQ(status_of_forked([] { return !lost_ucx_by_fork() && is_forked_child() ? 0 : 1; }), 0);
    const counted_context of_ucx(true);
    EXPECT_EQ(status_of_forked([] {
                if (!lost_ucx_by_fork() || !is_forked_child()) return 1;
                return status_of_forked([] { return lost_ucx_by_fork() ? 0 : 2; });
              }),
              0);
  }
  EXPECT_EQ(status_of_forked([] { return lost_ucx_by_fork() || is_forked_child() ? 1 : 0; }), 0);
  EXPECT_FALSE(lost_ucx_by_fork());
  EXPECT_FALSE(is_forked_child());
}

struct locked_number {
  std::mutex mutex;
  int number = 0;
};

TEST(OnePerProcess, IsNewInAChildWhateverItsParentHasLocked) {
  static constinit one_per_process<locked_number> numbers;
  EXPECT_EQ(numbers.find(), nullptr);
  locked_number& made = numbers.get();
  EXPECT_EQ(&numbers.get(), &made);
  EXPECT_EQ(numbers.find(), &made);
  const std::lock_guard guard(made.mutex);
  made.number = 1;
  EXPECT_EQ(status_of_forked([&] {
              if (numbers.find() != nullptr) return 1;
              const std::lock_guard own(numbers.get().mutex);
              return numbers.get().number == 0 && &numbers.get() != &made ? 0 : 2;
            }),
            0);
  EXPECT_EQ(&numbers.get(), &made);
}

}  // namespace
}  // namespace ucx::detail
