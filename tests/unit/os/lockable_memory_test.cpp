// How much memory the process may lock.
#include "os/lockable_memory.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

namespace ucx::detail {
namespace {

constexpr std::size_t lock_limit = std::size_t{64} << 10U;

/// The process has this limit while this lives.
class limited_locks {
 public:
  explicit limited_locks(::rlim_t most) {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    ::rlimit now = before_;
    now.rlim_cur = most;
    set_ = ::setrlimit(RLIMIT_MEMLOCK, &now) == 0;
  }
  ~limited_locks() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }
  limited_locks(const limited_locks&) = delete;
  limited_locks& operator=(const limited_locks&) = delete;
  bool is_set() const { return set_; }

 private:
  ::rlimit before_ = {};
  bool set_ = false;
};

/// Takes CAP_IPC_LOCK from this thread; returns whether it had it.
bool drop_capability() {
  ::__user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  ::__user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  constexpr unsigned bit = 1U << static_cast<unsigned>(CAP_IPC_LOCK);
  const bool had = (data[0].effective & bit) != 0;
  data[0].effective &= ~bit;
  return ::syscall(SYS_capset, &header, data) == 0 && had;
}

/// Runs `body` on a thread without CAP_IPC_LOCK; returns whether the process has it.
template <class Body>
bool without_capability(Body body) {
  bool had = false;
  std::thread([&] {
    had = drop_capability();
    body();
  }).join();
  return had;
}

TEST(MayLock, UpToTheLimit) {
  const limited_locks little(lock_limit);
  without_capability([] {
    EXPECT_TRUE(may_lock(0));
    EXPECT_TRUE(may_lock(lock_limit));
    EXPECT_FALSE(may_lock(lock_limit + 1));
    EXPECT_FALSE(may_lock(std::size_t{24} << 20U));
  });
  const limited_locks none(0);
  without_capability([] {
    EXPECT_TRUE(may_lock(0));
    EXPECT_FALSE(may_lock(1));
  });
}

TEST(MayLock, BeyondTheLimitWithTheCapability) {
  if (!without_capability([] {})) GTEST_SKIP() << "this process has no CAP_IPC_LOCK";
  const limited_locks little(lock_limit);
  EXPECT_TRUE(may_lock(lock_limit + 1));
  EXPECT_TRUE(may_lock(std::size_t{24} << 20U));
}

TEST(MayLock, AnythingWithoutALimit) {
  const limited_locks none(RLIM_INFINITY);
  if (!none.is_set()) GTEST_SKIP() << "the process may not raise its limit";
  without_capability([] { EXPECT_TRUE(may_lock(std::size_t{1} << 60U)); });
}

TEST(MayLock, LeavesNothingLocked) {
  const limited_locks little(lock_limit);
  for (int i = 0; i < 100; ++i) static_cast<void>(may_lock(lock_limit + 1));
  without_capability([] {
    void* const room = ::mmap(nullptr, lock_limit, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    EXPECT_EQ(::mlock(room, lock_limit), 0) << "the whole limit is there still";
    ::munmap(room, lock_limit);
  });
}

}  // namespace
}  // namespace ucx::detail
