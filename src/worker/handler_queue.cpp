#include "worker/handler_queue.hpp"

#include <algorithm>
#include <utility>

#include "worker/operation.hpp"
#include "worker/worker_parts.hpp"

namespace ucx::detail {

void handler_queue::drop(std::unique_lock<worker_lock>& guard) noexcept {
  while (next_ < due_.size()) {
    entry due = std::move(due_[next_++]);
    // A handler may own the request whose end it was to hear of.
    completion_handler unused =
        due.ended == nullptr ? completion_handler() : due.ended->take_handler();
    guard.unlock();
    unused.reset();
    due.function = {};
    guard.lock();
    if (due.ended != nullptr) due.ended->release();
  }
}

void handler_queue::make_room(std::size_t count) {
  if (due_.capacity() - due_.size() >= expected_ + count) return;
  due_.reserve(std::max(2 * due_.capacity(), due_.size() + expected_ + count + reserved_places));
}

void handler_queue::add(operation& ended) noexcept {
  --expected_;
  due_.push_back({.ended = &ended});
  ended.retain();
}

void handler_queue::add_expected(move_only_handler<> function) noexcept {
  --expected_;
  due_.push_back({.function = std::move(function)});
}

bool handler_queue::run(std::unique_lock<worker_lock>& guard, worker_parts& parts,
                        const std::shared_ptr<worker_core>& kept) noexcept {
  if (next_ == due_.size()) return false;
  if (running_) {
    left_ = true;
    return false;
  }
  running_ = true;
  for (std::size_t left = due_.size() - next_; left > 0; --left) {
    if (arrived_message* const active = due_[next_].active) {
      ++next_;
      parts.run_handler(*active, *this, guard, kept);
      continue;
    }
    entry due = std::move(due_[next_++]);
    operation* const ended = due.ended;
    guard.unlock();
    call(std::move(due));
    guard.lock();
    if (ended != nullptr) ended->release();
  }
  running_ = false;
  if (next_ == due_.size()) {
    due_.clear();
  } else {
    due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(next_));
  }
  next_ = 0;
  return true;
}

bool handler_queue::take_left_over() noexcept { return std::exchange(left_, false) && ready(); }

/// By value: what the handler holds is destroyed here too, without the lock.
void handler_queue::call(entry due) noexcept {
  call_and_report([&due] {
    if (due.ended == nullptr) return due.function();
    due.ended->run_handler();
  });
}

}  // namespace ucx::detail
