#include "ucx/request.hpp"

#include <string>
#include <utility>

#include "detail/abandon.hpp"
#include "detail/core_access.hpp"
#include "detail/deadline.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/operation.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx {

void request::drop(detail::operation& held) noexcept {
  if (!held.done()) detail::abandon(held);
  held.drop();
}

bool request::done() const noexcept { return operation_ == nullptr || operation_->done(); }

std::error_code request::error() const noexcept {
  return operation_ == nullptr ? std::error_code() : operation_->error();
}

message_info request::received() const noexcept {
  return done() && operation_ != nullptr ? operation_->received() : message_info();
}

void request::wait() {
  std::error_code ec;
  wait(ec);
  if (ec) throw ucx::error(ec, detail::failure_text(*operation_));
}

void request::wait(std::error_code& ec) {
  ec.clear();
  if (operation_ == nullptr) return;
  if (!operation_->done()) {
    if (operation_->worker().in_handler()) {
      ec = errc::would_deadlock;
      return;
    }
    operation_->worker().wait(*operation_, detail::clock::time_point::max());
  }
  ec = operation_->error();
}

bool request::wait_for(std::chrono::nanoseconds duration) {
  if (done()) return true;
  return wait_until(detail::after(operation_->worker().api().now(), duration));
}

bool request::wait_for(std::chrono::nanoseconds duration, std::error_code& ec) {
  ec.clear();
  if (done()) return true;
  return wait_until(detail::after(operation_->worker().api().now(), duration), ec);
}

bool request::wait_until(std::chrono::steady_clock::time_point deadline) {
  std::error_code ec;
  const bool ended = wait_until(deadline, ec);
  if (ec) throw ucx::error(ec, detail::failure_text(*operation_));
  return ended;
}

bool request::wait_until(std::chrono::steady_clock::time_point deadline, std::error_code& ec) {
  ec.clear();
  if (done()) return true;
  detail::worker_core& worker = operation_->worker();
  if (!worker.in_handler()) return worker.wait(*operation_, deadline);
  ec = errc::would_deadlock;
  return false;
}

void request::then(completion_handler handler) {
  if (operation_ != nullptr && !operation_->claim_handler()) {
    throw ucx::error(make_error_code(errc::invalid_argument),
                     "a second handler for the " + detail::failure_text(*operation_));
  }
  if (!done()) {
    const std::lock_guard guard(operation_->worker().lock());
    if (!operation_->done()) {
      operation_->set_handler(std::move(handler));
      return;
    }
  }
  if (handler) handler(error());
}

void request::cancel() noexcept {
  if (done()) return;
  detail::worker_core& worker = operation_->worker();
  {
    const std::lock_guard guard(worker.lock());
    if (!operation_->done()) operation_->give_up(errc::canceled);
  }
  worker.settle();
}

std::string request::description() const {
  return operation_ == nullptr ? std::string("nothing") : detail::failure_text(*operation_);
}

bool request::rebind(std::span<std::byte> into) noexcept {
  if (done()) return false;
  const std::lock_guard guard(operation_->worker().lock());
  return operation_->rebind(into);
}

std::future<void> request::to_future() && {
  auto promise = std::make_unique<std::promise<void>>();
  std::future<void> future = promise->get_future();
  if (done()) {
    if (const std::error_code ec = error()) {
      promise->set_exception(
          std::make_exception_ptr(ucx::error(ec, detail::failure_text(*operation_))));
    } else {
      promise->set_value();
    }
    return future;
  }
  detail::operation* operation = operation_;
  if (operation->has_handler()) {
    throw ucx::error(make_error_code(errc::invalid_argument),
                     "a future behind a handler, of the " + detail::failure_text(*operation));
  }
  // The handler owns the request, and with it the operation, until it has run.
  auto owned = std::make_unique<request>(std::move(*this));
  request& kept = *owned;
  kept.then([operation, promise = std::move(promise),
             owned = std::move(owned)](std::error_code ec) mutable {
    if (ec) {
      promise->set_exception(
          std::make_exception_ptr(ucx::error(ec, detail::failure_text(*operation))));
    } else {
      promise->set_value();
    }
  });
  return future;
}

void request::awaiter::await_suspend(std::coroutine_handle<> coroutine) {
  request_.then([coroutine](std::error_code) { coroutine.resume(); });
}

}  // namespace ucx
