// The lock of a worker: taken once a call, and once a round of progress.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace ucx::detail {

/// Its address names the calling thread. Asking the system for its name would be a call, more than
/// all else that an uncontended lock costs.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local char thread_mark = 0;

/// Recursive, because completions start operations.
class worker_lock {
 public:
  /// Whom it keeps apart.
  enum class between {
    threads,   ///< That use the worker at the same time: who has to wait sleeps.
    visitors,  ///< One thread, and now and then another one, which looks again and again.
  };
  explicit worker_lock(between whom = between::threads) noexcept
      : visited_(whom == between::visitors) {}
  worker_lock(const worker_lock&) = delete;
  worker_lock& operator=(const worker_lock&) = delete;

  void lock() {
    if (visited_) return lock_as_visitor();
    if (!mutex_.try_lock()) {
      contenders_.fetch_add(1, std::memory_order_relaxed);
      mutex_.lock();
      contenders_.fetch_sub(1, std::memory_order_relaxed);
    }
    ++depth_;
  }
  void unlock() {
    --depth_;
    if (!visited_) return mutex_.unlock();
    if (depth_ == 0) owner_.store(nullptr, std::memory_order_release);
  }
  /// Returns whether its holder, who asks, holds it once: unlocking then sets it free.
  bool is_outermost() const noexcept { return depth_ == 1; }
  /// For a thread that takes the lock in a tight loop: a mutex is not fair, so it steps back for
  /// those who wait.
  void let_others_in() const noexcept {
    while (contenders_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  }

 private:
  /// One atomic exchange, and a plain store to unlock. A mutex would take two, to find out who is
  /// to be woken, and the locks of a short message cost more than what they guard.
  void lock_as_visitor() {
    const char* const self = &thread_mark;
    if (owner_.load(std::memory_order_relaxed) != self) {
      const char* nobody = nullptr;
      if (!owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
        wait_for_turn(self);
      }
    }
    ++depth_;
  }
  void wait_for_turn(const char* self) {
    contenders_.fetch_add(1, std::memory_order_relaxed);
    const char* nobody = nullptr;
    for (unsigned looks = 0; !owner_.compare_exchange_weak(nobody, self, std::memory_order_acquire,
                                                           std::memory_order_relaxed);
         ++looks) {
      nobody = nullptr;
      if (looks < longest_yielding) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    contenders_.fetch_sub(1, std::memory_order_relaxed);
  }
  static constexpr unsigned longest_yielding = 1000;

  const bool visited_;
  unsigned depth_ = 0;  // the holder's
  std::atomic<const char*> owner_{nullptr};
  std::recursive_mutex mutex_;
  std::atomic<int> contenders_{0};
};

}  // namespace ucx::detail
