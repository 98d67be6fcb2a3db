// Work that other threads leave for a worker.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/inbox_task.hpp"
#include "ucx/completion_handler.hpp"
#include "worker/handler_queue.hpp"

namespace ucx::detail {

/// A thread that leaves something there wakes the worker then. Threads: safe.
class worker_inbox {
 public:
  /// Returns whether something may be in it.
  bool has_any() const noexcept { return has_any_.load(std::memory_order_acquire); }
  /// A function of users'.
  void add(move_only_handler<> function);
  /// Work of the library's own.
  void add_work(move_only_handler<> work);
  void add(std::shared_ptr<inbox_task> work) noexcept;

  /// Adds users' functions to `handlers` and work to `work`, and returns what was handed over.
  /// Where there is no memory for that it throws std::bad_alloc, and all stays in it.
  inbox_tasks take(handler_queue& handlers, std::vector<move_only_handler<>>& work);
  /// Puts back what was taken out, before everything else.
  void put_back(inbox_tasks&& handed) noexcept;
  /// Destroys all that is in it.
  void drop() noexcept;

 private:
  std::mutex mutex_;
  std::vector<move_only_handler<>> functions_;
  std::vector<move_only_handler<>> work_;
  inbox_tasks handed_;
  std::atomic<bool> has_any_{false};
};

}  // namespace ucx::detail
