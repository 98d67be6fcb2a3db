#include "base/forked_child.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/one_per_process.hpp"
#include "memory/buffer_pool_core.hpp"
#include "memory/memory_pool_core.hpp"
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

/// What an earlier test of this program has left, or a thread still closes, would be counted.
bool has_contexts() {
  return status_of_forked([] { return is_forked_child() ? 1 : 0; }) != 0;
}

TEST(ProcessStamp, IsTheChildsWhereThereWasNoContext) {
  ASSERT_FALSE(has_contexts()) << "a context of an earlier test is there still";
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
  ASSERT_FALSE(has_contexts()) << "a context of an earlier test is there still";
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

/// Called under the lock of its pool.
class forking_waiter final : public buffer_waiter {
 public:
  std::function<int()> work;
  int status = -1;

 private:
  void buffer_came() noexcept override { status = status_of_forked(work); }
};

TEST(InheritedBufferPool, GivesAndTakesNothingWhoeverHasItsLock) {
  const counted_context any(false);
  const auto pool =
      std::make_shared<buffer_pool_core>(buffer_pool_options{.size = 100, .count = 2});
  buffer first = pool->take();
  buffer second = pool->take();
  forking_waiter waiter;
  ASSERT_FALSE(pool->take_for(waiter));
  waiter.work = [&] {
    if (pool->take() || pool->take_for(waiter)) return 1;
    if (pool->available() != 0) return 2;
    bool called = false;
    pool->when_available([&] { called = true; });
    if (called || pool->leave(waiter)) return 3;
    static_cast<void>(buffer_home::give_back(std::move(second)));
    return 0;
  };
  first = buffer();
  EXPECT_EQ(waiter.status, 0);
  EXPECT_TRUE(pool->take_for(waiter));
  EXPECT_EQ(pool->available(), 1U);
}

/// Called under the lock of its pool.
class forking_source final : public memory_source {
 public:
  explicit forking_source(int& status) noexcept : status_(status) {}
  std::function<int()> work;

 private:
  memory_place place() const noexcept override { return {}; }
  std::size_t alignment() const noexcept override { return alignof(std::max_align_t); }
  void* allocate(std::size_t size) noexcept override {
    status_ = status_of_forked(work);
    return std::malloc(size);
  }
  void free(void* block, std::size_t) noexcept override { std::free(block); }

  int& status_;
};

TEST(InheritedMemoryPool, GivesAndTakesNothingWhoeverHasItsLock) {
  const counted_context any(false);
  int status = -1;
  auto source = std::make_unique<forking_source>(status);
  std::function<int()>& work = source->work;
  memory_pool_core pool(std::move(source), 1000);
  work = [&] {
    pool.give_back(&status);
    pool.release_unused();
    if (pool.usage().max_size != 0) return 1;
    try {
      pool.allocate(100, 8);
    } catch (const std::bad_alloc&) {
      return 0;
    }
    return 2;
  };
  void* const block = pool.allocate(100, 8);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pool.usage().max_size, 1000U);
  pool.give_back(block);
}

}  // namespace
}  // namespace ucx::detail
