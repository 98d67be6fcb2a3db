// The work of a worker's next round, besides UCX and the clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/inbox_task.hpp"
#include "ucx/completion_handler.hpp"
#include "worker/worker_inbox.hpp"
#include "worker/worker_parts.hpp"

namespace ucx::detail {

class driven_tasks;
class handler_queue;
class worker_core;

/// The library's own work that UCX's callbacks left behind, and what other threads have handed to
/// the worker. Under the worker's lock, but for what names another thread.
class round_work {
 public:
  round_work(worker_core& worker, const round_agenda& agenda);
  round_work(const round_work&) = delete;
  round_work& operator=(const round_work&) = delete;

  /// Queues work for after UCX's callbacks have returned. It must not call users' code.
  void defer(move_only_handler<> work);
  // From any thread, which then wakes the worker.
  void post(move_only_handler<> function);
  void post_work(move_only_handler<> work);
  void hand_over(std::shared_ptr<inbox_task> work) noexcept;
  /// Tasks of users' came into the queue.
  void tasks_came() noexcept { note(); }
  const std::shared_ptr<driven_tasks>& tasks() const noexcept { return tasks_; }
  /// A buffer came back that a receive waits for.
  void buffer_came() noexcept;

  bool has_any() const noexcept {
    return agenda_.owed || pending_.load(std::memory_order_acquire) != 0;
  }
  /// Does all of it. Work that it leaves waits for the next round, and so does work that there was
  /// no memory for; then it throws std::bad_alloc. Returns whether there was any.
  bool run(worker_core& worker, worker_parts& parts, handler_queue& handlers);
  /// The worker ends: destroys what other threads have handed over, and tells users' tasks.
  void drop_handed() noexcept;
  /// It is gone: destroys what is left.
  void drop() noexcept { deferred_.clear(); }

 private:
  bool take_handed(worker_core& worker, handler_queue& handlers);
  bool run_deferred();
  /// By an exchange: a thread that finds it set sees what all have added that set it before.
  void note() noexcept { pending_.exchange(1, std::memory_order_acq_rel); }

  worker_core& worker_;
  const round_agenda& agenda_;
  worker_inbox inbox_;
  const std::shared_ptr<driven_tasks> tasks_;
  std::vector<move_only_handler<>> deferred_;
  std::vector<move_only_handler<>> next_deferred_;  // the list that is empty
  std::atomic<bool> buffers_came_{false};
  std::atomic<std::uint32_t> pending_{0};  // set behind whatever is added: one look tells
};

}  // namespace ucx::detail
