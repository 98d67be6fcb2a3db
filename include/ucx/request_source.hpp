// Requests that a program completes itself.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <system_error>

#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class async_pipe_core;
class sourced_operation;
struct sourced_words;
class worker_core;
}  // namespace detail

/// The options of a request that the program completes.
struct request_source_options {
  /// The request in words: `request::description()`, and the beginning of the error's text.
  std::string description = {};
  /// How long it may take. Zero means the worker's `operation_timeout`; `nanoseconds::max()` means
  /// that it has no deadline.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Told, once and as a handler, that the request is not wanted any more: `canceled`, also where
  /// it was destroyed, or `timed_out`. Not called after `complete()`.
  /// Lifetime: what it refers to, until the request has ended. It is destroyed then, or when it has
  /// run. So it may own what works for the request, with the source.
  completion_handler on_stop = {};
};

/// The side of a request on which a program completes it, as `std::promise` is that of a future.
/// For operations that are made of others: protocols over messages, calls of another library. The
/// other side has all of a `request`: a deadline, `cancel()`, `then()`, `co_await`, `wait_any()`.
///
///     ucx::request_source source(worker, {.description = "asking the scheduler", .timeout = 2s});
///     ucx::request answered = source.start();  // for the caller
///     ...
///     source.complete();
///
/// The deadline, `cancel()` and the destructor of the request end it at once. Only while it is
/// claimed they have to wait: claim it before the caller's memory is touched.
/// Threads: as the worker's. A program with a worker of one thread completes by `worker::post()`.
class UCXIO_EXPORT request_source {
 public:
  /// Makes an empty source.
  request_source() noexcept = default;
  explicit request_source(const worker& driven, request_source_options options = {});
  /// Returns a request that has failed, for a call that can not begin. `text` is that of the error.
  static request failed(std::error_code why, std::string text);
  request_source(request_source&& other) noexcept;
  request_source& operator=(request_source&& other) noexcept;
  /// Ends the request with `closed`, unless it has ended.
  ~request_source();

  /// Begins the request, and returns it. Its time runs from here.
  /// Errors: those of `complete()`, timed_out, canceled, closed (the source has gone),
  /// forked_child, invalid_argument (it was begun before, or the source is empty).
  request start();

  /// Returns whether the request is under way. If so it does not end before `complete()` or
  /// `unclaim()`: the caller's memory may be read and written until then. A destructor of the
  /// request waits for that, for the worker's `heartbeat_timeout` at most. A longer claim is void.
  /// REQUIRES: the claim ends without a round of the worker.
  bool claim() noexcept;
  /// Takes the claim back. A request that was given up meanwhile ends.
  void unclaim() noexcept;

  /// Ends the request. The caller's results have to be in place. `text` replaces the description in
  /// the error's text. Returns whether it did: the first end counts.
  bool complete(std::error_code outcome = {}, std::string text = {}) noexcept;
  /// Returns whether the request has ended, or was never begun.
  bool done() const noexcept;

 private:
  friend class detail::async_pipe_core;
  /// Begins another request at once, whose description others have, too. After warm-up it takes no
  /// memory.
  request start(const worker& driven, std::shared_ptr<const std::string> description,
                std::chrono::nanoseconds timeout, completion_handler on_stop);
  request begin(detail::sourced_words words, std::chrono::nanoseconds timeout,
                completion_handler& on_stop);

  std::shared_ptr<detail::worker_core> worker_;
  std::unique_ptr<request_source_options> options_;  // until it begins
  detail::sourced_operation* operation_ = nullptr;   // this object owns one reference
};

}  // namespace ucx
