#include "worker/driven_tasks.hpp"

#include <utility>

#include "base/deadline.hpp"
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

bool driven_task::post_at(std::chrono::steady_clock::time_point when) noexcept {
  const std::shared_ptr<driven_tasks> to = queue_;
  return to->post_at(*this, when);
}

bool driven_task::post_after(std::chrono::nanoseconds delay) noexcept {
  const std::shared_ptr<driven_tasks> to = queue_;
  return to->post_after(*this, delay);
}

void driven_task::hasten() noexcept {
  const std::shared_ptr<driven_tasks> of = queue_;
  of->hasten(*this);
}

// In a child of fork() a thread that is not there may have the mutex.

bool driven_tasks::post(driven_task& task) noexcept {
  if (made_.is_inherited()) return false;
  const std::lock_guard guard(mutex_);
  if (worker_ == nullptr) return false;
  add(task);
  return true;
}

bool driven_tasks::post_at(driven_task& task, clock::time_point when) noexcept {
  if (made_.is_inherited()) return false;
  const std::lock_guard guard(mutex_);
  if (worker_ == nullptr) return false;
  add_at(task, when);
  return true;
}

bool driven_tasks::post_after(driven_task& task, clock::duration delay) noexcept {
  if (made_.is_inherited()) return false;
  const std::lock_guard guard(mutex_);
  if (worker_ == nullptr) return false;
  add_at(task, after(worker_->api().now(), delay));
  return true;
}

void driven_tasks::hasten(driven_task& task) noexcept {
  if (made_.is_inherited()) return;
  const std::lock_guard guard(mutex_);
  if (task.place_ == driven_task::place::timers) {
    timers_.remove(task);
    add(task);
  } else {
    task.is_hasty_ = true;
  }
}

void driven_tasks::add(driven_task& task) noexcept {
  task.previous_ = queued_.last;
  task.next_ = nullptr;
  (queued_.last == nullptr ? queued_.first : queued_.last->next_) = &task;
  queued_.last = &task;
  ++queued_.size;
  task.place_ = driven_task::place::queue;
  has_been_used_.store(true, std::memory_order_release);
  if (worker_ != nullptr) worker_->tasks_came();
}

void driven_tasks::add_at(driven_task& task, clock::time_point when) noexcept {
  if (task.is_hasty_) return add(task);
  task.when_ = when;
  task.place_ = driven_task::place::timers;
  timers_.add(task);
  has_been_used_.store(true, std::memory_order_release);
  if (timers_.first() != &task) return;
  has_new_first_ = true;
  worker_->tasks_came();
}

void driven_tasks::withdraw(driven_task& task) noexcept {
  if (made_.is_inherited()) return;
  std::unique_lock guard(mutex_);
  if (task.place_ == driven_task::place::queue) return unlink(task);
  if (task.place_ == driven_task::place::timers) {
    timers_.remove(task);
    task.place_ = driven_task::place::none;
    return;
  }
  if (runner_ == std::this_thread::get_id()) return;
  called_.wait(guard, [&] { return running_ != &task; });
}

void driven_tasks::unlink(driven_task& task) noexcept {
  (task.previous_ == nullptr ? queued_.first : task.previous_->next_) = task.next_;
  (task.next_ == nullptr ? queued_.last : task.next_->previous_) = task.previous_;
  --queued_.size;
  task.place_ = driven_task::place::none;
  task.is_hasty_ = false;
}

bool driven_tasks::queue(handler_queue& handlers) {
  if (!has_been_used_.load(std::memory_order_acquire)) return false;
  const std::lock_guard guard(mutex_);
  if (std::exchange(has_new_first_, false) && timers_.first() != nullptr) {
    worker_->tick_by(timers_.first()->when_);
  }
  if (queued_.first == nullptr || has_handler_) return false;
  handlers.add([kept = shared_from_this()] { kept->run(); });
  has_handler_ = true;
  return true;
}

clock::time_point driven_tasks::tick(clock::time_point now) noexcept {
  if (!has_been_used_.load(std::memory_order_acquire)) return clock::time_point::max();
  const std::lock_guard guard(mutex_);
  while (timers_.first() != nullptr && timers_.first()->when_ <= now) {
    driven_task& due = *timers_.first();
    timers_.remove(due);
    add(due);
  }
  return timers_.first() == nullptr ? clock::time_point::max() : timers_.first()->when_;
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
  while (driven_task* const next = timers_.first()) {
    timers_.remove(*next);
    add(*next);
  }
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
