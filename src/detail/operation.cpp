#include "detail/operation.hpp"

#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

operation::~operation() = default;

void operation::start(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
                      clock::time_point deadline) noexcept {
  worker_ = &worker;
  endpoint_ = endpoint.get();
  held_ = std::move(endpoint);
  deadline_ = deadline;
  error_.clear();
  references_.store(2, std::memory_order_relaxed);
  done_.store(false, std::memory_order_relaxed);
  worker.add_outstanding(*this);
}

void operation::fail(std::error_code why) noexcept {
  error_ = why;
  references_.store(1, std::memory_order_relaxed);
}

void operation::complete(std::error_code outcome) noexcept {
  worker_->remove_outstanding(*this);
  error_ = outcome;
  done_.store(true, std::memory_order_seq_cst);  // pairs with the waiters' count: see wake_waiters
  worker_->wake_waiters();
  if (handler_) worker_->queue_handler(*this);
  release();
}

void operation::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (worker_ == nullptr) return recycle();
  // Where no request handle took it, the connection may go with it, and the worker: after the lock.
  const std::shared_ptr<endpoint_core> held = let_go();
  const std::lock_guard guard(worker_->lock());
  handler_.reset();
  recycle();
}

void operation::set_handler(completion_handler handler) {
  handler_ = std::move(handler);
  if (done() && handler_) worker_->queue_handler(*this);
}

void operation::run_handler() noexcept {
  completion_handler handler = std::exchange(handler_, completion_handler());
  if (handler) handler(error_);
}

bool operation::rebind(std::span<std::byte>) noexcept { return false; }

std::string failure_text(const operation& failed) {
  std::string text = failed.describe();
  if (const endpoint_core* endpoint = failed.endpoint()) {
    const std::string words = endpoint->words();
    if (!words.empty()) text += " (" + words + ")";
  }
  return text;
}

}  // namespace ucx::detail
