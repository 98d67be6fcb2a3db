#include "ucx/request.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "cuda/cuda_driver.hpp"
#include "cuda/stream_wait_value.hpp"
#include "rpc/call_operation.hpp"
#include "ucx/error.hpp"
#include "worker/cancel_and_wait.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/stop_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

/// Has a stream wait for an operation's end.
detail::result<void> hold(detail::operation* wanted, void* cuda_stream) {
  const auto fail = [wanted](std::error_code code, const std::string& why) {
    const std::string what = wanted == nullptr ? "nothing" : detail::failure_text(*wanted);
    return detail::failure{code, "a CUDA stream's wait for the " + what + " (" + why + ")"};
  };
  if (cuda_stream == nullptr) {
    return fail(errc::invalid_argument,
                "no stream: the default ones are CU_STREAM_LEGACY and CU_STREAM_PER_THREAD");
  }
  if (wanted == nullptr || wanted->done()) return {};
  const detail::cuda_driver* const driver = detail::cuda_driver::find();
  if (driver == nullptr) return fail(errc::not_supported, "there is no CUDA driver");
  detail::worker_core& worker = wanted->worker();
  std::chrono::nanoseconds left;
  {
    const std::lock_guard guard(worker.lock());
    left = wanted->deadline() - worker.api().now();
  }
  const detail::clock::time_point until = detail::after(detail::clock::now(), left);
  // Without the lock: a driver whose queue is full waits.
  auto gate = detail::stream_wait_value::shut(*driver, cuda_stream, until);
  if (!gate) return fail(gate.why().code, gate.why().text);
  const std::lock_guard guard(worker.lock());
  if (!wanted->done()) wanted->add_gate(*std::move(gate));
  return {};
}

/// Returns the code of what a function of the peer threw, where it was called.
std::error_code cause_of(const detail::operation* ended) noexcept {
  const auto* const call = dynamic_cast<const detail::call_operation*>(ended);
  return call != nullptr && call->done() ? call->cause() : std::error_code();
}

/// The operation of a request, for a call that waits: a handler may destroy the request meanwhile.
class awaited_operation {
 public:
  explicit awaited_operation(detail::operation* awaited) noexcept : awaited_(awaited) {
    if (awaited == nullptr || awaited->done()) return;
    if (awaited->worker().is_inherited()) {
      why_not_ = errc::forked_child;
    } else if (awaited->worker().in_handler()) {
      why_not_ = errc::would_deadlock;
    } else {
      awaited->begin_wait();
      waits_ = true;
    }
  }
  ~awaited_operation() {
    if (waits_) awaited_->end_wait();
  }
  awaited_operation(const awaited_operation&) = delete;
  awaited_operation& operator=(const awaited_operation&) = delete;

  /// Returns why nothing can wait for it.
  std::error_code why_not() const noexcept { return why_not_; }
  /// Waits for `limit` at most; null: until its end.
  bool wait(const std::chrono::nanoseconds* limit = nullptr) const {
    if (!waits_) return true;
    detail::worker_core& worker = awaited_->worker();
    return worker.wait(*awaited_, limit == nullptr ? detail::clock::time_point::max()
                                                   : detail::after(worker.api().now(), *limit));
  }
  std::error_code error() const noexcept {
    return awaited_ == nullptr ? std::error_code() : awaited_->error();
  }
  std::string text() const { return detail::failure_text(*awaited_); }
  std::optional<int> ucx_status() const {
    return why_not_ ? std::optional<int>() : awaited_->ucx_status();
  }
  std::error_code cause() const noexcept { return cause_of(awaited_); }

 private:
  detail::operation* awaited_;
  std::error_code why_not_;
  bool waits_ = false;
};

/// REQUIRES: `ended` is done.
void keep(std::promise<message_info>& promise, const request& ended) {
  if (const std::error_code ec = ended.error()) {
    promise.set_exception(std::make_exception_ptr(ucx::error(
        ec, ended.description(), ended.ucx_status(), cause_of(detail::core_access::get(ended)))));
  } else {
    promise.set_value(ended.received());
  }
}

}  // namespace

void request::drop(detail::operation& held) noexcept {
  if (held.is_inherited()) return;
  if (!held.done()) {
    detail::cancel_and_wait(held);
    if (held.leaves_to_round()) held.worker().settle();  // there may be no further round
  }
  held.drop();
}

bool request::done() const noexcept { return operation_ == nullptr || operation_->done(); }

std::error_code request::error() const noexcept {
  return operation_ == nullptr ? std::error_code() : operation_->error();
}

std::optional<int> request::ucx_status() const noexcept {
  return operation_ == nullptr ? std::optional<int>() : operation_->ucx_status();
}

message_info request::received() const noexcept {
  return done() && operation_ != nullptr ? operation_->received() : message_info();
}

void request::wait(std::error_code& ec) {
  const awaited_operation awaited(operation_);
  std::error_code outcome = awaited.why_not();
  // It returns before the end in a child of fork() alone.
  if (!outcome) outcome = awaited.wait() ? awaited.error() : make_error_code(errc::forked_child);
  if (outcome && &ec == &throws) {
    throw ucx::error(outcome, awaited.text(), awaited.ucx_status(), awaited.cause());
  }
  if (&ec != &throws) ec = outcome;
}

bool request::wait_for(std::chrono::nanoseconds duration, std::error_code& ec) {
  const awaited_operation awaited(operation_);
  const bool ended = !awaited.why_not() && awaited.wait(&duration);
  detail::end_with(awaited.why_not(), ec, [&awaited] { return awaited.text(); });
  return ended;
}

void request::then(completion_handler handler) {
  if (operation_ != nullptr && !operation_->claim_handler()) {
    throw ucx::error(make_error_code(errc::invalid_argument),
                     "a second handler for the " + detail::failure_text(*operation_));
  }
  if (!done()) {
    if (operation_->is_inherited()) {
      if (handler) handler(errc::forked_child);
      return;
    }
    const std::lock_guard guard(operation_->worker().lock());
    if (!operation_->done()) {
      operation_->set_handler(std::move(handler));
      return;
    }
  }
  if (handler) handler(error());
}

void request::enqueue_wait(void* cuda_stream, std::error_code& ec) {
  hold(operation_, cuda_stream).or_end(ec);
}

void request::cancel() noexcept {
  if (done() || operation_->is_inherited()) return;
  detail::worker_core& worker = operation_->worker();
  {
    const std::lock_guard guard(worker.lock());
    if (!operation_->done()) operation_->give_up(errc::canceled);
  }
  worker.settle();
}

void request::cancel_on(const std::stop_token& stop) {
  if (done() || operation_->is_inherited()) return;
  const std::lock_guard guard(operation_->worker().lock());
  if (!operation_->done()) detail::stop_link::connect(*operation_, stop);
}

void request::leave(completion_handler keeper) {
  struct orphan {
    completion_handler keeper;  // goes last
    request left = {};
    completion_handler told = {};

    void operator()(std::error_code ec) {
      if (told) told(ec);
    }
  };
  if (done() || operation_->is_inherited()) return static_cast<void>(request(std::move(*this)));
  detail::operation& given_up = *operation_;
  detail::worker_core& worker = given_up.worker();
  auto kept = std::make_unique<orphan>(orphan{.keeper = std::move(keeper)});
  request ended;
  detail::operation::kept_alive held;  // what the request keeps, its handler does not
  {
    const std::lock_guard guard(worker.lock());
    if (given_up.done()) {
      ended = std::move(*this);
    } else {
      kept->told = given_up.take_handler();
      if (!kept->told) worker.expect_handler();
      given_up.claim_handler();
      kept->left = std::move(*this);
      given_up.set_expected_handler([kept = std::move(kept)](std::error_code ec) { (*kept)(ec); });
      given_up.give_up(errc::canceled);
      held = given_up.let_go();
    }
  }
  worker.settle();
}

std::string request::description() const {
  return operation_ == nullptr ? std::string("nothing") : detail::failure_text(*operation_);
}

request_attributes request::attributes() const {
  if (operation_ == nullptr) return {};
  request_attributes told = operation_->attributes();
  if (const detail::endpoint_core* const over = operation_->endpoint()) {
    told.connection = over->number();
    told.peer = over->peer();
  }
  return told;
}

bool request::rebind(std::span<std::byte> into) noexcept {
  if (done() || operation_->is_inherited()) return false;
  const std::lock_guard guard(operation_->worker().lock());
  return operation_->rebind(into);
}

std::future<message_info> request::to_future() && {
  auto promise = std::make_unique<std::promise<message_info>>();
  std::future<message_info> future = promise->get_future();
  if (done()) {
    keep(*promise, *this);
    return future;
  }
  if (operation_->has_handler()) {
    throw ucx::error(make_error_code(errc::invalid_argument),
                     "a future behind a handler, of the " + detail::failure_text(*operation_));
  }
  // The handler owns the request, and with it the operation, until it has run.
  auto owned = std::make_unique<request>(std::move(*this));
  request& ended = *owned;
  ended.then([promise = std::move(promise), owned = std::move(owned)](std::error_code) {
    keep(*promise, *owned);
  });
  return future;
}

void request::awaiter::await_suspend(std::coroutine_handle<> coroutine) {
  request_.then([coroutine](std::error_code) { coroutine.resume(); });
}

}  // namespace ucx
