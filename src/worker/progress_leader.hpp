// Which of the threads that wait for a worker drives it, and how the others sleep meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "worker/waiting_threads.hpp"

namespace ucx::detail {

class operation;
class worker_core;

/// Leader and followers. One of the threads that wait for a worker leads: it makes the worker's
/// rounds, and sleeps on the worker's events. The others sleep until the leader, or another thread
/// that ends what they wait for, wakes them. If the worker has a thread, that one leads always.
/// Threads: safe, without the worker's lock.
class progress_leadership {
 public:
  /// Returns whether the calling thread leads from here on: no other one did.
  bool take() noexcept { return !taken_.exchange(true, std::memory_order_seq_cst); }
  void leave() noexcept { taken_.store(false, std::memory_order_seq_cst); }
  bool is_taken() const noexcept { return taken_.load(std::memory_order_seq_cst); }

  // How the leader sleeps.
  /// Says whether it may sleep from here on: what is started, or ends, behind that wakes it.
  void may_sleep(bool now) noexcept { leader_sleeps_.store(now, std::memory_order_seq_cst); }
  bool may_sleep() const noexcept { return leader_sleeps_.load(std::memory_order_seq_cst); }

  // How the followers do.
  /// Returns how often something has happened that threads may wait for.
  std::uint32_t wakes() const noexcept { return wakes_.load(std::memory_order_seq_cst); }
  /// Sleeps until something has happened since `wakes()` was `seen`, or, if there is `waited`, that
  /// has ended; `until` at most. Does not sleep where no thread leads and `leads` says that one of
  /// the waiting threads has to.
  void follow(clock::time_point until, std::uint32_t seen, const operation* waited, bool leads);
  /// Something has happened: `ended`, or (nothing) something else.
  void count_wake() noexcept { wakes_.fetch_add(1, std::memory_order_seq_cst); }
  void wake_followers(const operation* ended) noexcept;
  /// Wakes one, to lead.
  void wake_one() noexcept { followers_.wake_one(); }

 private:
  waiting_threads followers_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> taken_{false};
  std::atomic<bool> leader_sleeps_{false};
};

/// The right of one thread to lead. Goes with the wait that took it, and to the next thread that
/// waits.
class progress_leader {
 public:
  explicit progress_leader(worker_core& worker) noexcept : worker_(worker) {}
  progress_leader(const progress_leader&) = delete;
  progress_leader& operator=(const progress_leader&) = delete;
  ~progress_leader();
  /// Returns whether the calling thread drives.
  bool take() noexcept;
  /// The calling thread has slept, while another one led.
  void has_followed() noexcept { followed_ = true; }

 private:
  worker_core& worker_;
  bool held_ = false;
  bool followed_ = false;
};

}  // namespace ucx::detail
