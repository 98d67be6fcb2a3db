// Notifications from writers to the owner of a region, and the handler and waits that take them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/intrusive_list.hpp"
#include "ucx/memory_region.hpp"

namespace ucx::detail {

class notification_wait;
class worker_core;
struct notification_tag {};

/// Bounded. Notifications go to the handler, if there is one; else to those who wait, in order.
/// Threads: sharing one object is safe. Its lock is taken inside the workers' locks.
class notification_queue : public std::enable_shared_from_this<notification_queue> {
 public:
  /// So many may be waiting for their owner; further ones are refused with `busy`.
  static constexpr std::size_t most = 1024;

  notification_queue() = default;
  notification_queue(const notification_queue&) = delete;
  notification_queue& operator=(const notification_queue&) = delete;

  /// A notification came over `by`, under its lock. Errors: busy, revoked.
  std::error_code push(const notification& said, worker_core& by);
  /// Takes the oldest; returns whether there was one.
  bool take(notification& into);
  std::size_t size() const;

  /// From here on `handler` is called; an empty one ends the calls. Returns when the old handler
  /// does not run any more, unless it is called inside that handler.
  void set_handler(notification_handler handler);
  /// Calls the handler for what is there, unless another thread does; without any lock.
  void deliver();

  /// Somebody waits, under its worker's lock; it may be served at once.
  void add(notification_wait& waiting);
  /// Returns whether it waited, and does not any more.
  bool remove(notification_wait& waiting) noexcept;

  /// Nothing comes any more; those who wait get `errc::closed`. As set_handler otherwise.
  void close() noexcept;

 private:
  /// Has the handler called for what is there, if there is both.
  void deliver_soon();
  void await_handler(std::unique_lock<std::mutex>& guard);
  void delivered() noexcept;

  mutable std::mutex mutex_;
  std::deque<notification> unread_;
  std::weak_ptr<worker_core> last_;  // the worker that had the last one
  intrusive_list<notification_wait, notification_tag> waiting_;
  std::shared_ptr<notification_handler> handler_;
  bool delivering_ = false;
  std::thread::id deliverer_;
  std::condition_variable delivered_;
  bool closed_ = false;
};

}  // namespace ucx::detail
