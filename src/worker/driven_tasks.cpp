#include "worker/driven_tasks.hpp"

#include <utility>

#include "worker/handler_queue.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool driven_task::post(std::shared_ptr<driven_tasks> to) noexcept {
  queue_ = to;
  return to->post(*this);  // and then it may be gone
}

void driven_task::withdraw() noexcept {
  if (queue_) queue_->withdraw(*this);
}

bool driven_tasks::post(driven_task& task) noexcept {
  const std::lock_guard guard(mutex_);
  if (worker_ == nullptr || worker_->is_inherited()) return false;
  task.previous_ = queued_.last;
  task.next_ = nullptr;
  (queued_.last == nullptr ? queued_.first : queued_.last->next_) = &task;
  queued_.last = &task;
  ++queued_.size;
  task.is_queued_ = true;
  worker_->tasks_came();
  return true;
}

void driven_tasks::withdraw(driven_task& task) noexcept {
  std::unique_lock guard(mutex_);
  if (task.is_queued_) return unlink(task);
  if (runner_ == std::this_thread::get_id()) return;
  called_.wait(guard, [&] { return running_ != &task; });
}

void driven_tasks::unlink(driven_task& task) noexcept {
  (task.previous_ == nullptr ? queued_.first : task.previous_->next_) = task.next_;
  (task.next_ == nullptr ? queued_.last : task.next_->previous_) = task.previous_;
  --queued_.size;
  task.is_queued_ = false;
}

bool driven_tasks::queue(handler_queue& handlers) {
  const std::lock_guard guard(mutex_);
  if (queued_.first == nullptr || has_handler_) return false;
  handlers.add([kept = shared_from_this()] { kept->run(); });
  has_handler_ = true;
  return true;
}

/// Tasks that come meanwhile wait for the next round.
void driven_tasks::run() noexcept {
  std::unique_lock guard(mutex_);
  has_handler_ = false;
  for (std::size_t left = queued_.size; left > 0 && queued_.first != nullptr; --left) {
    call_first(false, guard);
  }
}

void driven_tasks::close() noexcept {
  std::unique_lock guard(mutex_);
  worker_ = nullptr;
  while (queued_.first != nullptr) call_first(true, guard);
}

void driven_tasks::call_first(bool worker_ends, std::unique_lock<std::mutex>& guard) noexcept {
  driven_task& task = *queued_.first;
  unlink(task);
  driven_task* const outer = std::exchange(running_, &task);
  const std::thread::id outer_runner = std::exchange(runner_, std::this_thread::get_id());
  // The task may destroy itself, and its share of this.
  guard.unlock();
  task.call(worker_ends);
  guard.lock();
  running_ = outer;
  runner_ = outer_runner;
  called_.notify_all();
}

}  // namespace ucx::detail
