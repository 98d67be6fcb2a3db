#include "worker/worker_inbox.hpp"

#include <utility>

namespace ucx::detail {

void worker_inbox::add(move_only_handler<> function) {
  const std::lock_guard guard(mutex_);
  functions_.push_back(std::move(function));
  has_any_.store(true, std::memory_order_release);
}

void worker_inbox::add_work(move_only_handler<> work) {
  const std::lock_guard guard(mutex_);
  work_.push_back(std::move(work));
  has_any_.store(true, std::memory_order_release);
}

void worker_inbox::add(std::shared_ptr<inbox_task> work) noexcept {
  const std::lock_guard guard(mutex_);
  handed_.push(std::move(work));
  has_any_.store(true, std::memory_order_release);
}

inbox_tasks worker_inbox::take(handler_queue& handlers, std::vector<move_only_handler<>>& work) {
  const std::lock_guard guard(mutex_);
  work.reserve(work.size() + work_.size());
  handlers.make_room(functions_.size());
  has_any_.store(false, std::memory_order_relaxed);
  for (move_only_handler<>& each : work_) work.push_back(std::move(each));
  work_.clear();
  for (move_only_handler<>& function : functions_) handlers.add(std::move(function));
  functions_.clear();
  return std::move(handed_);
}

void worker_inbox::put_back(inbox_tasks&& handed) noexcept {
  const std::lock_guard guard(mutex_);
  handed.append(std::move(handed_));
  handed_.append(std::move(handed));
  has_any_.store(true, std::memory_order_release);
}

/// Without the lock: what users' functions hold may be anything.
void worker_inbox::drop() noexcept {
  std::vector<move_only_handler<>> functions;
  std::vector<move_only_handler<>> work;
  const inbox_tasks handed = [&] {
    const std::lock_guard guard(mutex_);
    has_any_.store(false, std::memory_order_relaxed);
    functions.swap(functions_);
    work.swap(work_);
    return std::move(handed_);
  }();
}

}  // namespace ucx::detail
