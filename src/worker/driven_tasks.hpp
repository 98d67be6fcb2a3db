// Tasks that any thread leaves for the thread that drives a worker, in their owners' memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/forked_child.hpp"
#include "ucx/driven_task.hpp"
#include "worker/task_timers.hpp"

namespace ucx::detail {

class handler_queue;
class worker_core;

/// First come, first served. It outlives its worker: what is posted then is refused.
/// Threads: safe.
class driven_tasks : public std::enable_shared_from_this<driven_tasks> {
 public:
  explicit driven_tasks(worker_core& worker) noexcept : worker_(&worker) {}
  driven_tasks(const driven_tasks&) = delete;
  driven_tasks& operator=(const driven_tasks&) = delete;

  /// Returns false where the worker has ended.
  bool post(driven_task& task) noexcept;
  bool post_at(driven_task& task, clock::time_point when) noexcept;
  bool post_after(driven_task& task, clock::duration delay) noexcept;
  /// See driven_task::hasten.
  void hasten(driven_task& task) noexcept;
  /// See driven_task::withdraw.
  void withdraw(driven_task& task) noexcept;

  /// Has `handlers` call what is queued. Under the worker's lock. Where there is no memory for that
  /// it throws std::bad_alloc, and nothing has changed. Returns whether it did.
  bool queue(handler_queue& handlers);
  /// Queues the tasks that are due; returns when the next one is. Under the worker's lock.
  clock::time_point tick(clock::time_point now) noexcept;
  /// The worker ends: calls what is queued, and refuses what comes. Not under the worker's lock.
  void close() noexcept;

 private:
  /// A list through its elements.
  struct list {
    driven_task* first = nullptr;
    driven_task* last = nullptr;
    std::size_t size = 0;
  };
  void run() noexcept;
  void add(driven_task& task) noexcept;
  void add_at(driven_task& task, clock::time_point when) noexcept;
  void call_first(bool worker_ends, std::unique_lock<std::mutex>& guard) noexcept;
  void unlink(driven_task& task) noexcept;

  const process_stamp made_;
  std::atomic<bool> has_been_used_{false};  // else rounds need not look
  std::mutex mutex_;
  std::condition_variable called_;
  worker_core* worker_;  // null when it has ended
  list queued_;
  task_timers timers_;
  bool has_new_first_ = false;  // of the timers: the worker is to look at the clock earlier
  driven_task* running_ = nullptr;
  std::thread::id runner_;
  bool has_handler_ = false;  // that will run what is queued
};

}  // namespace ucx::detail
