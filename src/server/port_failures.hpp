// The ports that a server has lost, and the handler that is told.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ucx/connection_report.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Tells a handler of each port once, and of one at a time. Several listeners may look after one
/// port, on threads of several workers. While one thread calls the handler, others leave their
/// failures to it. They do not wait: the handler may close the server, which waits for them.
/// Threads: safe.
class port_failures {
 public:
  using handler = std::function<void(const listener_failure&)>;

  explicit port_failures(handler told) : handler_(std::move(told)) {}
  port_failures(const port_failures&) = delete;
  port_failures& operator=(const port_failures&) = delete;

  /// Returns a handler that has `told` called so; none where there is none.
  static handler in_order(handler told) {
    if (!told) return {};
    return [all = std::make_shared<port_failures>(std::move(told))](const listener_failure& lost) {
      all->tell(lost);
    };
  }

  /// Throws what the handler does. Those that wait are told with the next one then.
  void tell(const listener_failure& lost) {
    std::unique_lock guard(mutex_);
    if (std::find(known_.begin(), known_.end(), lost.port) != known_.end()) return;
    known_.reserve(known_.size() + 1);
    waiting_.push_back(lost);
    known_.push_back(lost.port);
    if (std::exchange(is_telling_, true)) return;
    while (!waiting_.empty()) {
      const listener_failure next = std::move(waiting_.front());
      waiting_.pop_front();
      guard.unlock();
      try {
        handler_(next);
      } catch (...) {
        guard.lock();
        is_telling_ = false;
        throw;
      }
      guard.lock();
    }
    is_telling_ = false;
  }

 private:
  const handler handler_;
  std::mutex mutex_;
  std::vector<socket_address> known_;
  std::deque<listener_failure> waiting_;
  bool is_telling_ = false;
};

}  // namespace ucx::detail
