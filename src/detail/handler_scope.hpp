// A call of users' code, during which others can wait for its end.
#pragma once

#include <mutex>

#include "detail/worker_lock.hpp"

namespace ucx::detail {

/// Counts as running, without the worker's lock, until its own end: also where the code throws.
class handler_scope {
 public:
  /// REQUIRES: `guard` is the only hold of this thread on the lock.
  handler_scope(std::unique_lock<worker_lock>& guard, int& running)
      : guard_(guard), running_(running) {
    ++running_;
    guard_.unlock();
  }
  ~handler_scope() {
    guard_.lock();
    --running_;
  }
  handler_scope(const handler_scope&) = delete;
  handler_scope& operator=(const handler_scope&) = delete;

 private:
  std::unique_lock<worker_lock>& guard_;
  int& running_;
};

}  // namespace ucx::detail
