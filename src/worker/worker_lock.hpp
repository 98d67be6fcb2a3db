// The lock of a worker: taken once a call, and once a round of progress.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/forked_child.hpp"

namespace ucx::detail {

/// Its address names the calling thread. Asking the system for its name would be a call, more than
/// all else that an uncontended lock costs.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local char thread_mark = 0;

/// A mutex: one thread has it at a time, and sees what others did while they had it. A thread that
/// waits sleeps. Recursive, because completions start operations.
/// Where there are visitors only, its user takes it with plain stores and loads, as in Dekker's
/// algorithm. The order that these lack is brought about by the visitor, through the system
/// (membarrier(2); WG21 P1202, "asymmetric fences"). An atomic exchange of the user's would wait
/// until all that it has stored is in its cache. Data that UCX sends through shared memory lies in
/// another core's. A thread that visits again and again becomes the user; where that changes too
/// often, there is no user any more.
/// In a child of fork() no thread waits for an inherited lock: a thread that is not there may have
/// it.
/// It lives until every `unlock()` has returned: a user looks whether to wake somebody at the end.
class worker_lock {
 public:
  /// Whom it keeps apart.
  enum class between {
    threads,   ///< That use the worker at the same time: who has to wait sleeps at once.
    visitors,  ///< One thread, and now and then another one; or one after the other.
  };
  explicit worker_lock(between whom = between::threads) noexcept
      : visited_(whom == between::visitors && has_barrier()) {}
  worker_lock(const worker_lock&) = delete;
  worker_lock& operator=(const worker_lock&) = delete;

  void lock() {
    if (visited_) return lock_as_user();
    if (!mutex_.try_lock()) wait_for_others();
    ++depth_;
  }
  void unlock() {
    --depth_;
    if (!visited_) return mutex_.unlock();
    if (depth_ == 0) unlock_as_user();
  }
  /// Returns whether its holder, who asks, holds it once: unlocking then sets it free.
  bool is_outermost() const noexcept { return depth_ == 1; }
  /// For assertions. Where threads share the lock its holder is not noted: that a thread has it is
  /// all that is known there.
  bool is_mine() const noexcept {
    return visited_ ? holder_.load(std::memory_order_relaxed) == &thread_mark : depth_ > 0;
  }
  /// For a thread that takes the lock in a tight loop: a mutex is not fair, so it steps back for
  /// those who wait.
  void let_others_in() const noexcept {
    while (contenders_.load(std::memory_order_relaxed) > 0 && !made_.is_inherited()) {
      std::this_thread::yield();
    }
  }

 private:
  /// Where a thread that usually takes the lock says that it has it. Never another thread's later:
  /// an earlier user may still store there, which no thread looks at any more.
  struct seat {
    std::atomic<const char*> user{nullptr};
    std::atomic<bool> taken{false};  // or about to be
  };
  static constexpr unsigned seats = 8;

  /// Returns whether the system has such a barrier for this process.
  static bool has_barrier() noexcept;

  void lock_as_user() {
    const char* const self = &thread_mark;
    if (holder_.load(std::memory_order_relaxed) != self && !sit_down(self)) visit(self);
    ++depth_;
  }
  bool sit_down(const char* self) noexcept {
    seat* const mine = seat_.load(std::memory_order_relaxed);
    if (mine == nullptr || mine->user.load(std::memory_order_relaxed) != self) return false;
    mine->taken.store(true, std::memory_order_relaxed);
    // Here a visitor's barrier stands for a fence of this thread's.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (visited_now_.load(std::memory_order_acquire) ||
        seat_.load(std::memory_order_relaxed) != mine) {
      leave(*mine);
      return false;
    }
    sitting_ = mine;
    holder_.store(self, std::memory_order_relaxed);
    return true;
  }
  void unlock_as_user() noexcept {
    holder_.store(nullptr, std::memory_order_relaxed);
    if (seat* const left = sitting_) {
      sitting_ = nullptr;
      leave(*left);
    } else {
      end_visit();
    }
  }
  /// A visitor that sleeps until then is woken: its barrier stands for a fence here, too. Either it
  /// sees that the seat is free, or this thread sees that it visits.
  void leave(seat& mine) noexcept {
    mine.taken.store(false, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (visited_now_.load(std::memory_order_relaxed)) wake_visitor();
  }
  void wake_visitor() noexcept;
  void wait_for_others();
  void visit(const char* self);
  void end_visit() noexcept;
  void wait_until_free() noexcept;
  void note_visit(const char* self) noexcept;

  const process_stamp made_;
  const bool visited_;
  unsigned depth_ = 0;  // the holder's
  std::atomic<const char*> holder_{nullptr};
  seat* sitting_ = nullptr;  // the holder's, where it is no visitor
  std::atomic<seat*> seat_{nullptr};
  std::atomic<bool> visited_now_{false};  // somebody has it without the seat, or waits for it
  std::array<seat, seats> seats_;
  unsigned given_ = 0;   // of them
  unsigned visits_ = 0;  // in a row, of one thread
  const char* last_visitor_ = nullptr;
  std::recursive_mutex mutex_;  // of the threads, or of those without the seat
  std::atomic<int> contenders_{0};
  std::mutex sleeping_;  // the visitor that has to wait; with it `freed_`
  std::condition_variable freed_;
};

}  // namespace ucx::detail
