// The lock of a worker: taken once a call, and once a round of progress.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace ucx::detail {

/// Recursive, because completions start operations. Satisfies Lockable.
class worker_lock {
 public:
  worker_lock() noexcept = default;
  void lock() {
    if (mutex_.try_lock()) return;
    contenders_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    contenders_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }
  /// For a thread that takes the lock in a tight loop: a mutex is not fair, so it steps back for
  /// those who wait.
  void let_others_in() const noexcept {
    while (contenders_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  }

 private:
  std::recursive_mutex mutex_;
  std::atomic<int> contenders_{0};
};

}  // namespace ucx::detail
