#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <future>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/export.hpp"
#include "ucx/message_info.hpp"

namespace ucx {

namespace detail {
class operation;
struct core_access;
}  // namespace detail

/// One operation in flight. It completes exactly once, at the latest when its deadline passes, as
/// long as someone drives the worker: every wait below does.
/// Destroying an unfinished request gives it up, and returns only when UCX can no longer touch the
/// memory it borrowed: at once for reads by message, and for writes by message where UCX does not
/// watch the connection; else within the worker's `heartbeat_timeout`, after which the connection
/// is dropped. Inside a completion callback it is dropped at once, because nothing may wait there.
/// Threads: as the worker's. `done()` may be called from any thread.
class [[nodiscard]] UCXIO_EXPORT request {
 public:
  /// Makes an empty request, which is done and succeeded.
  request() noexcept = default;
  request(request&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
  request& operator=(request&& other) noexcept {
    if (this == &other) return *this;
    detail::operation* const before =
        std::exchange(operation_, std::exchange(other.operation_, nullptr));
    if (before != nullptr) drop(*before);
    return *this;
  }
  ~request() {
    if (operation_ != nullptr) drop(*operation_);
  }
  void swap(request& other) noexcept { std::swap(operation_, other.operation_); }

  /// Returns whether the operation has ended, well or badly. Makes no progress by itself.
  bool done() const noexcept;

  /// Returns why the operation failed; no error while it is in flight, or when it succeeded.
  std::error_code error() const noexcept;

  /// Returns in words what is done, with how many bytes, on what, and which peer: the beginning of
  /// the text of its error.
  std::string description() const;

  /// Returns, once a receive is done, the sender's tag and the true length of its message, also
  /// where it did not fit (`message_truncated`); of a receive from the byte stream, how many bytes
  /// there are. Zeros of anything else, and of a receive that got no message.
  message_info received() const noexcept;

  /// Waits until the operation ends; its own deadline bounds the wait.
  /// Errors: the operation's; would_deadlock inside a completion callback of the same worker.
  void wait();
  void wait(std::error_code& ec);

  /// Waits for `duration` at most and returns whether the operation has ended. It goes on if not.
  /// Errors: would_deadlock inside a completion callback of the same worker.
  bool wait_for(std::chrono::nanoseconds duration);
  bool wait_for(std::chrono::nanoseconds duration, std::error_code& ec);
  /// Waits until `deadline` at most and returns whether the operation has ended. Errors: as above.
  bool wait_until(std::chrono::steady_clock::time_point deadline);
  bool wait_until(std::chrono::steady_clock::time_point deadline, std::error_code& ec);

  /// Calls `handler` once when the operation ends, on the thread that drives progress, or now, on
  /// this thread, if it has ended already. The request keeps owning the operation: keep it until
  /// the handler has run, or the operation is given up and the handler gets `canceled`. A request
  /// that goes between its end and its handler changes nothing: the handler still runs, from the
  /// next progress, or at the latest when the worker goes.
  /// Lifetime: what `handler` refers to, until it has run, which may be after the request is gone.
  /// Errors: invalid_argument: there is one handler a request, whether it has run or not.
  void then(completion_handler handler);

  /// Has what is enqueued on a CUDA stream from now on (a `CUstream`, which a `cudaStream_t` is
  /// too, of whatever context; the default ones as in `io_options::cuda_stream`) wait until the
  /// operation has ended. No thread waits for that: a kernel behind it finds the bytes of a read,
  /// or may overwrite those of a write. Whatever the operation is of, and as often as it is called.
  /// The stream goes on at every end: failure, cancellation and the loss of this request included,
  /// so that `error()` is to be looked at before what was made of the bytes is used; and at the
  /// deadline even where nobody drives the worker. The operation then is `timed_out`, whatever
  /// becomes of it. Of a request that is done nothing is enqueued.
  /// Somebody has to drive the worker meanwhile: a thread that ought to, and waits for the stream
  /// instead, gets that `timed_out` (docs/how-to/gpu.md, "What is ordered").
  /// Errors: not_supported (there is no CUDA driver, it is too old, or this is a child that was
  /// forked), invalid_argument (null; a stream that captures a graph; a default one where no
  /// context is current), busy (1024 waits of the streams of one context have not ended; no thread
  /// to be had), no_memory, io_error (the driver's). Then nothing is enqueued.
  /// Cost: some calls of the driver's, which wait for nothing; the first for a context registers 4
  /// KiB of the host's memory with it, for good.
  void enqueue_wait(void* cuda_stream);
  void enqueue_wait(void* cuda_stream, std::error_code& ec);

  /// Asks for an early end. The outcome is told as always: `canceled`, or what happened first.
  void cancel() noexcept;

  /// Gives a read other memory to fill, of the same size, unless bytes have begun to arrive; then
  /// (and for anything that is not a read) returns false, and nothing has changed.
  /// Lifetime: as that of the memory that the read was started with, which is free again.
  bool rebind(std::span<std::byte> into) noexcept;

  /// Returns a future of what was `received()`; it throws `ucx::error`. The request is consumed
  /// (unless it has a handler already, which is invalid_argument), and the memory is borrowed until
  /// the future is ready. In mode `caller` somebody has to drive the worker meanwhile:
  /// `future.get()` does not.
  std::future<message_info> to_future() &&;

  class awaiter;
  /// `co_await std::move(request)`: resumes on the thread that drives progress with what was
  /// `received()`, and throws `ucx::error`. The coroutine owns the operation meanwhile.
  awaiter operator co_await() &&;

 private:
  friend struct detail::core_access;
  explicit request(detail::operation* operation) noexcept : operation_(operation) {}
  static void drop(detail::operation& held) noexcept;

  detail::operation* operation_ = nullptr;  // one reference is ours
};

/// What `co_await` on a request uses.
class UCXIO_EXPORT request::awaiter {
 public:
  explicit awaiter(request&& awaited) noexcept : request_(std::move(awaited)) {}
  bool await_ready() const noexcept { return request_.done(); }
  void await_suspend(std::coroutine_handle<> coroutine);
  message_info await_resume() {
    request_.wait();
    return request_.received();
  }

 private:
  request request_;
};

inline request::awaiter request::operator co_await() && { return awaiter(std::move(*this)); }

}  // namespace ucx
