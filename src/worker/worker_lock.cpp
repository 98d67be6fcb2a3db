#include "worker/worker_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ucx::detail {
namespace {

/// So many visits in a row make a visitor the user.
constexpr unsigned most_visits = 8;
/// Work under the lock is short, mostly: so often a visitor looks before it sleeps.
constexpr unsigned most_looks = 1000;

long barrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

/// When the library is loaded there is one thread, mostly, and it takes no time; with more it takes
/// milliseconds.
const bool has_private_barrier = barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

/// From here on what each thread of the process did before is seen, and it sees what this one did.
/// Nothing else could be relied on where the system no longer does what it has said it would: then
/// the process ends.
void order_all_threads() noexcept {
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // Of a child that was forked, the system may want to hear it again.
  barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  std::fputs("ucxio: membarrier(2) was allowed when the library was loaded, and is no longer\n",
             stderr);
  std::abort();
}

}  // namespace

bool worker_lock::has_barrier() noexcept { return has_private_barrier; }

/// In a child it is taken all the same; to unlock what another thread has is refused, and no harm.
void worker_lock::wait_for_others() {
  if (made_.is_inherited()) return;
  contenders_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  contenders_.fetch_sub(1, std::memory_order_relaxed);
}

void worker_lock::visit(const char* self) {
  if (made_.is_inherited()) return holder_.store(self, std::memory_order_relaxed);
  contenders_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  contenders_.fetch_sub(1, std::memory_order_relaxed);
  const seat* const given = seat_.load(std::memory_order_relaxed);
  if (given != nullptr && given->user.load(std::memory_order_relaxed) != self) {
    visited_now_.store(true, std::memory_order_relaxed);
    order_all_threads();
    wait_until_free();
  }
  note_visit(self);
  holder_.store(self, std::memory_order_relaxed);
}

/// REQUIRES: the mutex is held, and who sits there knows of this visit when it leaves.
void worker_lock::wait_until_free() noexcept {
  const std::atomic<bool>& taken = seat_.load(std::memory_order_relaxed)->taken;
  for (unsigned looks = 0; looks < most_looks; ++looks) {
    if (!taken.load(std::memory_order_acquire)) return;
    std::this_thread::yield();
  }
  std::unique_lock guard(sleeping_);
  freed_.wait(guard, [&] { return !taken.load(std::memory_order_acquire); });
}

/// Under the mutex: who has looked already sleeps by then.
void worker_lock::wake_visitor() noexcept {
  if (made_.is_inherited())
    return;  // no thread visits here, and the parent's visitor may have had it
  const std::lock_guard guard(sleeping_);
  freed_.notify_one();
}

/// The first one to come gets the seat, and who comes again and again.
void worker_lock::note_visit(const char* self) noexcept {
  const seat* const given = seat_.load(std::memory_order_relaxed);
  const bool is_mine = given != nullptr && given->user.load(std::memory_order_relaxed) == self;
  visits_ = is_mine ? 0 : self == last_visitor_ ? visits_ + 1 : 1;
  last_visitor_ = self;
  if (given_ > 0 && (is_mine || given == nullptr || visits_ < most_visits)) return;
  visits_ = 0;
  if (given_ == seats) return seat_.store(nullptr, std::memory_order_relaxed);
  seat& next = seats_[given_++];
  next.user.store(self, std::memory_order_relaxed);
  seat_.store(&next, std::memory_order_release);
}

void worker_lock::end_visit() noexcept {
  if (made_.is_inherited()) return;
  visited_now_.store(false, std::memory_order_release);
  mutex_.unlock();
}

}  // namespace ucx::detail
