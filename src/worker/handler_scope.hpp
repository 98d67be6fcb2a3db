// A call of users' code, during which others can wait for its end.
#pragma once

#include <mutex>

#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Counts as running, without the worker's lock, until its own end: also where the code throws.
/// Then who waits for that is woken.
class handler_scope {
 public:
  /// REQUIRES: `guard` is the only hold of this thread on the lock.
  handler_scope(worker_core& worker, std::unique_lock<worker_lock>& guard, int& running)
      : worker_(worker), guard_(guard), running_(running) {
    ++running_;
    guard_.unlock();
  }
  ~handler_scope() {
    guard_.lock();
    --running_;
    worker_.wake_waiters();
  }
  handler_scope(const handler_scope&) = delete;
  handler_scope& operator=(const handler_scope&) = delete;

 private:
  worker_core& worker_;
  std::unique_lock<worker_lock>& guard_;
  int& running_;
};

}  // namespace ucx::detail
