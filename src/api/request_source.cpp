#include "ucx/request_source.hpp"

#include <mutex>
#include <utility>

#include "base/forked_child.hpp"
#include "base/pool.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/sourced_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {

request_source::request_source(const worker& driven, request_source_options options)
    : worker_(detail::core_access::core(driven)),
      options_(std::make_unique<request_source_options>(std::move(options))) {}

request_source::request_source(request_source&& other) noexcept
    : worker_(std::move(other.worker_)),
      options_(std::move(other.options_)),
      operation_(std::exchange(other.operation_, nullptr)) {}

request_source& request_source::operator=(request_source&& other) noexcept {
  request_source before(std::move(*this));
  worker_ = std::move(other.worker_);
  options_ = std::move(other.options_);
  operation_ = std::exchange(other.operation_, nullptr);
  return *this;
}

request_source::~request_source() {
  if (detail::leave_to_parent(worker_)) return;
  if (operation_ == nullptr) return;
  complete(errc::closed);
  const std::lock_guard guard(worker_->lock());
  operation_->release();
}

request request_source::failed(std::error_code why, std::string text) {
  return detail::failed_request(why, std::move(text));
}

request request_source::start() {
  if (!worker_ || !options_) {
    return detail::failed_request(errc::invalid_argument,
                                  "a request of a source that is empty, or has made its request");
  }
  const std::unique_ptr<request_source_options> with = std::move(options_);
  if (worker_->is_inherited()) {
    return detail::failed_request(errc::forked_child, std::move(with->description));
  }
  return begin({.own = std::move(with->description)}, with->timeout, with->on_stop);
}

request request_source::start(const worker& driven, std::shared_ptr<const std::string> description,
                              std::chrono::nanoseconds timeout, completion_handler on_stop) {
  *this = request_source();
  worker_ = detail::core_access::core(driven);
  if (!worker_) return detail::failed_request(errc::invalid_argument, *description);
  if (worker_->is_inherited()) return detail::failed_request(errc::forked_child, *description);
  return begin({.shared = std::move(description)}, timeout, on_stop);
}

/// A rest of `on_stop` goes without the lock.
request request_source::begin(detail::sourced_words words, std::chrono::nanoseconds timeout,
                              completion_handler& on_stop) {
  const std::lock_guard guard(worker_->lock());
  std::unique_ptr<detail::sourced_operation> made(
      worker_->pool_of<detail::sourced_operation>().take());
  made->begin(worker_, std::move(words), on_stop, worker_->deadline_after(timeout));
  operation_ = made.release();
  return detail::core_access::make_request(operation_);
}

bool request_source::claim() noexcept {
  if (done() || worker_->is_inherited()) return false;
  const std::lock_guard guard(worker_->lock());
  return operation_->claim();
}

void request_source::unclaim() noexcept {
  if (done() || worker_->is_inherited()) return;
  const std::lock_guard guard(worker_->lock());
  operation_->unclaim();
}

bool request_source::complete(std::error_code outcome, std::string text) noexcept {
  if (done() || worker_->is_inherited()) return false;
  completion_handler unused;  // goes without the lock
  // What goes with it may keep this source, and be the last that keeps the worker.
  const std::shared_ptr<detail::worker_core> worker = worker_;
  const std::lock_guard guard(worker->lock());
  return operation_->end(outcome, std::move(text), unused);
}

bool request_source::done() const noexcept { return operation_ == nullptr || operation_->done(); }

}  // namespace ucx
