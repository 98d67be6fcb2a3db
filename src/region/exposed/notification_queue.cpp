#include "region/exposed/notification_queue.hpp"

#include <utility>

#include "region/exposed/notification_wait.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

std::error_code notification_queue::push(const notification& said, worker_core& by) {
  std::unique_lock guard(mutex_);
  if (closed_) return errc::revoked;
  if (unread_.size() >= most) return errc::busy;
  if (notification_wait* const first = handler_ ? nullptr : waiting_.front()) {
    waiting_.remove(*first);
    first->serve_later(said, {});
    return {};
  }
  unread_.push_back(said);
  last_ = by.weak_from_this();
  if (handler_) {
    by.queue_handler([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->deliver();
    });
  }
  return {};
}

bool notification_queue::take(notification& into) {
  const std::lock_guard guard(mutex_);
  if (unread_.empty()) return false;
  into = unread_.front();
  unread_.pop_front();
  return true;
}

std::size_t notification_queue::size() const {
  const std::lock_guard guard(mutex_);
  return unread_.size();
}

void notification_queue::await_handler(std::unique_lock<std::mutex>& guard) {
  if (deliverer_ == std::this_thread::get_id()) return;
  delivered_.wait(guard, [this] { return !delivering_; });
}

void notification_queue::set_handler(notification_handler handler) {
  std::shared_ptr<notification_handler> made;
  if (handler) made = std::make_shared<notification_handler>(std::move(handler));
  {
    std::unique_lock guard(mutex_);
    std::swap(handler_, made);  // the old one is destroyed behind the lock
    await_handler(guard);
  }
  deliver_soon();
}

void notification_queue::deliver_soon() {
  std::shared_ptr<worker_core> worker;
  {
    const std::lock_guard guard(mutex_);
    if (handler_ && !unread_.empty()) worker = last_.lock();
  }
  if (!worker) return;
  worker->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->deliver();
  });
}

void notification_queue::deliver() {
  struct scope {
    notification_queue& queue;
    ~scope() { queue.delivered(); }
  };
  for (;;) {
    std::unique_lock guard(mutex_);
    if (delivering_ || !handler_ || unread_.empty()) return;
    const notification said = unread_.front();
    unread_.pop_front();
    const std::shared_ptr<notification_handler> handler = handler_;
    delivering_ = true;
    deliverer_ = std::this_thread::get_id();
    guard.unlock();
    const scope running{*this};
    try {
      (*handler)(said);
    } catch (...) {
      deliver_soon();  // what is left
      throw;           // reported where handlers are run
    }
  }
}

/// A handler has returned, or thrown: others may run, and those who replace it go on.
void notification_queue::delivered() noexcept {
  const std::lock_guard guard(mutex_);
  delivering_ = false;
  deliverer_ = {};
  delivered_.notify_all();
}

void notification_queue::add(notification_wait& waiting) {
  notification said;
  bool closed = false;
  {
    const std::lock_guard guard(mutex_);
    closed = closed_;
    if (!closed && unread_.empty()) {
      waiting_.push_back(waiting);
      return;
    }
    if (!unread_.empty()) {
      said = unread_.front();
      unread_.pop_front();
      closed = false;
    }
  }
  waiting.served(said, closed ? make_error_code(errc::closed) : std::error_code());
}

bool notification_queue::remove(notification_wait& waiting) noexcept {
  const std::lock_guard guard(mutex_);
  if (!static_cast<list_hook<notification_tag>&>(waiting).linked()) return false;
  waiting_.remove(waiting);
  return true;
}

void notification_queue::close() noexcept {
  std::shared_ptr<notification_handler> gone;
  std::unique_lock guard(mutex_);
  closed_ = true;
  std::swap(handler_, gone);
  while (notification_wait* const waiting = waiting_.front()) {
    waiting_.remove(*waiting);
    waiting->serve_later({}, make_error_code(errc::closed));
  }
  await_handler(guard);
}

}  // namespace ucx::detail
