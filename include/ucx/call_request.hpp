// Calls in flight: docs/reference/calls.md, "Over connections".
#pragma once

#include <coroutine>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/call_reader.hpp"
#include "ucx/error.hpp"
#include "ucx/hybrid_clock.hpp"
#include "ucx/remote_procedure.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
struct call_result;
struct call_starter;
}  // namespace detail

/// A call in flight, whose types are known at run time. It is a request: it completes when the
/// answer is here, or fails with the error of the call.
///
/// Destroying an unfinished one gives the call up, and tells the peer. That waits only where memory
/// or windows go with it: up to `heartbeat_timeout`. Inside a handler the connection may go for it.
class UCXIO_EXPORT call_request : public request {
 public:
  /// Makes an empty call. It is done, and has no result.
  call_request() noexcept = default;

  /// Waits until the call has ended. Returns a reader of the result.
  /// Lifetime: this object, while the reader is used.
  /// Errors: those of `call_channel`; would_deadlock inside a completion callback of the worker.
  call_reader result(std::error_code& ec = throws) &;
  call_reader result(std::error_code& ec = throws) && = delete;

  /// Returns the code of what the function threw, after the call has ended with `call_failed`:
  /// `error::cause()` without an exception.
  std::error_code cause() const noexcept;

  /// Returns when the answer was here, by the clock of the channel. It is later than what the
  /// function did, where the peer has a clock that is not too far ahead
  /// (`hybrid_clock::max_ahead`). Empty before that, and where the channel has no clock, or there
  /// is no answer.
  clock_stamp clock() const noexcept;

 private:
  friend struct detail::call_starter;
  call_request(request started, std::shared_ptr<detail::call_result> result) noexcept
      : request(std::move(started)), result_(std::move(result)) {}

  std::shared_ptr<detail::call_result> result_;
};

/// A `call_request` whose result has a C++ type.
///
///     ucx::typed_call<int> sum = peer.start_call<int>("add", 25, 17);
///     use(sum.result());                       // waits
///     use(co_await peer.start_call<int>("add", 25, 17));
template <class Result>
class typed_call : public call_request {
 public:
  typed_call() noexcept = default;
  explicit typed_call(call_request started) noexcept : call_request(std::move(started)) {}

  /// Waits until the call has ended, and returns its result.
  /// Errors: those of `call_request::result()`; protocol_error: the result has other types.
  Result result(std::error_code& ec = throws) {
    call_reader from = call_request::result(ec);
    std::error_code wrong;  // of a reader of nothing
    return detail::read_call_result<Result>(from, &ec != &throws && ec ? wrong : ec);
  }

  class awaiter;
  /// `co_await std::move(call)`: resumes on the thread that drives progress, with the result, and
  /// throws `ucx::error`. The coroutine owns the call meanwhile.
  awaiter operator co_await() && { return awaiter(std::move(*this)); }
};

/// The awaiter of `co_await` on a call.
template <class Result>
class typed_call<Result>::awaiter {
 public:
  explicit awaiter(typed_call&& awaited) noexcept : call_(std::move(awaited)) {}
  bool await_ready() const noexcept { return call_.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    call_.then([coroutine](std::error_code) { coroutine.resume(); });
  }
  Result await_resume() { return call_.result(); }

 private:
  typed_call call_;
};

}  // namespace ucx
