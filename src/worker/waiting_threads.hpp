// The threads that sleep until another one, which drives their worker, has something for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"

namespace ucx::detail {

class operation;

/// Each sleeps for itself: what one of them waits for wakes that one. Sixteen threads that share a
/// connection, and were all woken by each other's transfers, took more than half of their time for
/// that.
class waiting_threads {
 public:
  waiting_threads() = default;
  waiting_threads(const waiting_threads&) = delete;
  waiting_threads& operator=(const waiting_threads&) = delete;

  /// Sleeps until the calling thread is woken, `until` at most; not at all unless `may_sleep()`
  /// holds when it is asked. A thread that makes that false after it was asked, and then wakes,
  /// wakes this thread. `waited` is what it waits for; null where it may be anything.
  template <class Condition>
  void sleep(const operation* waited, clock::time_point until, Condition may_sleep) {
    if (waited == nullptr) for_anything_.fetch_add(1, std::memory_order_seq_cst);
    count_.fetch_add(1, std::memory_order_seq_cst);
    {
      std::unique_lock guard(mutex_);
      if (may_sleep()) {
        sleeper self(waited);
        sleepers_.push_back(self);
        self.woken.wait_until(guard, until, [&] { return self.called; });
        sleepers_.remove(self);
      }
    }
    count_.fetch_sub(1, std::memory_order_seq_cst);
    if (waited == nullptr) for_anything_.fetch_sub(1, std::memory_order_seq_cst);
  }

  /// Wakes those who wait for `ended`, or for anything.
  void wake_for(const operation& ended) noexcept {
    if (count_.load(std::memory_order_seq_cst) > 0) wake_those_for(&ended);
  }
  /// Wakes those who wait for anything.
  void wake_for_anything() noexcept {
    if (for_anything_.load(std::memory_order_seq_cst) > 0) wake_those_for(nullptr);
  }
  /// Wakes one that is not woken yet, for work that no other thread sees to.
  void wake_one() noexcept;

 private:
  struct asleep_tag {};
  struct sleeper : list_hook<asleep_tag> {
    explicit sleeper(const operation* for_what) noexcept : waited(for_what) {}
    void call() noexcept {
      called = true;
      woken.notify_one();
    }
    const operation* const waited;
    bool called = false;
    std::condition_variable woken;
  };
  void wake_those_for(const operation* ended) noexcept;

  // Also those who have not asked yet whether they may.
  std::atomic<int> count_{0};
  std::atomic<int> for_anything_{0};
  std::mutex mutex_;
  intrusive_list<sleeper, asleep_tag> sleepers_;
};

}  // namespace ucx::detail
