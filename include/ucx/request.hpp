// Operations: their options, their handles, their outcome.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The options of one operation.
struct io_options {
  /// How long the operation may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Checks reads (not writes). The owner sends a checksum (XXH3-128) with each piece of at most a
  /// segment. A piece that does not match is asked for again, twice. Then the read fails with
  /// `checksum_mismatch`, and the text names the bytes. Such reads go by message, whatever the
  /// region's way. Memory that is written during the read may not match.
  /// Errors: not_supported (the owner's version sends none, or the memory is a device's),
  /// feature_disabled (the context was made without feature::am).
  bool verify = false;
  /// A CUDA stream of the program (a `CUstream`, or a `cudaStream_t`), if this side's memory is a
  /// CUDA device's. The device copies from or to the memory after all work that was enqueued on
  /// that stream before the call. The calling thread does not wait for that work. Work that is
  /// enqueued after the operation is done finds the bytes of a read in place, and may overwrite
  /// those of a write. Work that is enqueued in between is not ordered. Null means no stream. The
  /// default streams are CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2). Host memory ignores it.
  /// Lifetime: the call.
  /// Errors: invalid_argument (the stream is of another context than the memory).
  void* cuda_stream = nullptr;
};

/// The facts about a message without its bytes.
struct message_info {
  std::uint64_t tag = 0;  ///< The sender's tag; the number of an active message.
  std::uint64_t length =
      0;  ///< The payload's length as it was sent, even if it does not fit the receiver's memory.
  /// The kind of the sender's memory, as it was found, or as `send_options::kind` says.
  memory_kind memory = memory_kind::host;

  friend bool operator==(const message_info&, const message_info&) = default;
};

/// The kind of an operation.
enum class operation_kind {
  none,         ///< None was started: the request is empty, or failed at once.
  read,         ///< Of a region: one piece, or several.
  write,        ///< Likewise.
  atomic,       ///< An atomic access to a number of a region.
  notify,       ///< A notification of a region's owner.
  wait_notify,  ///< The wait of a region's owner for one.
  flush,
  send,  ///< Of a tagged or an active message.
  receive,
  stream_send,
  stream_receive,
  close,  ///< Of a connection.
  call,   ///< Of a function of the peer.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(operation_kind value) noexcept;

/// The facts about an operation, for programs that log or measure. `request::description()` has
/// them in words.
struct request_attributes {
  operation_kind kind = operation_kind::none;
  /// Bytes of the access, or of the message. A receive has 0 until its message is known, and a
  /// stream's receive has the bytes that have come.
  std::uint64_t size = 0;
  /// The kind of this side's memory: `host` for all memory of the host. After the end of a read or
  /// write, `cuda` stands for managed memory, too.
  memory_kind memory = memory_kind::host;
  std::uint64_t connection = 0;  ///< `connection_report::id`; 0 where it is of no one connection.
  socket_address peer = {};      ///< Empty for a connection by worker address, and without one.

  friend bool operator==(const request_attributes&, const request_attributes&) = default;
};

namespace detail {
class operation;
struct core_access;

/// Owns something until an operation has ended.
template <class KeepAlive>
struct kept_until_end {
  KeepAlive kept;

  void operator()(std::error_code) const noexcept {}
};

#if UCXIO_OLD_NAMES
inline std::chrono::nanoseconds left_until(std::chrono::steady_clock::time_point deadline) {
  const auto now = std::chrono::steady_clock::now();
  return deadline > now ? deadline - now : std::chrono::nanoseconds::zero();
}
#endif
}  // namespace detail

/// One operation in flight. It completes exactly once, at the latest when its deadline passes, as
/// long as a thread drives the worker. Every wait below drives it.
///
/// Destroying an unfinished request gives the operation up. It returns when UCX can no longer touch
/// the borrowed memory. That is at once for reads by message, and for writes by message where UCX
/// does not watch the connection. Otherwise it takes up to the worker's `heartbeat_timeout`; after
/// that the connection is dropped. Inside a completion callback, where no call may wait, such a
/// connection is dropped at once. `orphan()` never waits.
/// Threads: as the worker's. `done()` may be called from any thread.
class [[nodiscard]] UCXIO_EXPORT request {
 public:
  /// Makes an empty request. It is done, and succeeded.
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

  /// Returns whether the operation has ended, well or badly. Makes no progress.
  bool done() const noexcept;

  /// Returns why the operation failed. No error while it is in flight, and after success.
  std::error_code error() const noexcept;

  /// Returns the status by which UCX ended the operation, as `ucx::error::ucx_status()` does.
  /// Nothing while it is in flight, and after success.
  std::optional<int> ucx_status() const noexcept;

  /// Returns in words what the operation does, with how many bytes, on what, and with which peer.
  /// The error's text begins so.
  std::string description() const;

  /// Returns the same facts as values.
  /// Cost: of a read or write in a device's memory that has not ended, a question to the driver.
  request_attributes attributes() const;

  /// Returns, after a receive is done, the sender's tag and the true length of the message, even if
  /// it did not fit (`message_truncated`). For a receive from the byte stream it returns how many
  /// bytes came. Zeros for any other operation, and for a receive without a message.
  message_info received() const noexcept;

  /// Waits until the operation ends. The operation's deadline bounds the wait.
  /// Errors: the operation's; would_deadlock inside a completion callback of this worker.
  void wait(std::error_code& ec = throws);

  /// Waits for `duration` at most, and returns whether the operation has ended. If not, it goes on.
  /// Errors: would_deadlock inside a completion callback of this worker.
  bool wait_for(std::chrono::nanoseconds duration, std::error_code& ec = throws);

  /// Calls `handler` once when the operation ends, on the thread that drives progress. If it has
  /// ended already, calls it now, on this thread. The request keeps owning the operation: keep it
  /// until the handler has run. Destroying it gives the operation up, and the handler gets
  /// `canceled`. If the request goes after the operation's end and before the handler, the handler
  /// still runs. It runs from the next progress, at the latest when the worker goes.
  /// Lifetime: the objects that `handler` refers to, until it has run, which may be after the
  /// request is gone.
  /// Errors: invalid_argument: a request takes one handler, whether it has run or not.
  void then(completion_handler handler);

  /// Makes a CUDA stream wait until the operation has ended: all work that is enqueued on it from
  /// now on waits. `cuda_stream` is a `CUstream`, or a `cudaStream_t`, of any context; for the
  /// default streams see `io_options::cuda_stream`. No thread waits. A later kernel finds the bytes
  /// of a read, or may overwrite those of a write. Any operation may be waited for, any number of
  /// times. For a request that is done nothing is enqueued.
  ///
  /// The stream goes on at every end, also after failure, cancellation and the loss of this
  /// request: look at `error()` before the bytes are used. It goes on at the deadline even if no
  /// thread drives the worker. The operation is then `timed_out`, whatever its outcome. A thread
  /// has to drive the worker meanwhile. If that thread waits for the stream instead, it gets that
  /// `timed_out` (docs/how-to/gpu.md, "Order with CUDA streams").
  /// Errors: not_supported (there is no CUDA driver, it is too old, or this is a child that was
  /// forked), invalid_argument (null; a stream that captures a graph; a default one where no
  /// context is current), busy (1024 waits of the streams of one context have not ended; no thread
  /// can be started), no_memory, io_error (the driver's). Then nothing is enqueued.
  /// Cost: some calls of the driver, which do not wait. The first for a context registers 4 KiB of
  /// the host's memory with it, for good.
  void enqueue_wait(void* cuda_stream, std::error_code& ec = throws);

  /// Asks for an early end. The outcome is reported as always: `canceled`, or an outcome that came
  /// first.
  void cancel() noexcept;

  /// Cancels when `stop` is requested, on whatever thread, in the next round of progress: for
  /// `wait()`, `co_await`, `then()` and futures alike. A later token replaces an earlier one. The
  /// stop is no longer looked at when the operation has ended.
  void cancel_on(const std::stop_token& stop);

  /// Gives the operation up, never waits, and leaves the request empty. `keep_alive` owns the
  /// operation's memory: a buffer, a shared pointer, a reference of another language. It is
  /// destroyed when UCX can no longer touch that memory. That is at once if the operation has
  /// ended. Otherwise it is a handler, and comes after that of `then()`. Use it in threads that
  /// must not wait for the peer: in a handler, a loop, a destroyed coroutine.
  /// Without memory it throws std::bad_alloc, and has done nothing.
  template <std::move_constructible KeepAlive>
  void orphan(KeepAlive keep_alive) {
    if (operation_ != nullptr) leave(detail::kept_until_end<KeepAlive>{std::move(keep_alive)});
  }

  /// Gives a read other memory to fill, of equal size. Returns false, and changes nothing, after
  /// bytes have begun to arrive, unless they could be moved, and for any other operation.
  /// Lifetime: `into`, until the request is done. The earlier memory is free again.
  bool rebind(std::span<std::byte> into) noexcept;

  /// Returns a future of `received()`; it throws `ucx::error`. The request is consumed. In mode
  /// `caller` a thread has to drive the worker meanwhile: `future.get()` does not.
  /// Lifetime: the operation's memory, until the future is ready.
  /// Errors: invalid_argument where the request has a handler already; then it is not consumed.
  std::future<message_info> to_future() &&;

  class awaiter;
  /// `co_await std::move(request)`: resumes on the thread that drives progress, with the result of
  /// `received()`, and throws `ucx::error`. The coroutine owns the operation meanwhile.
  awaiter operator co_await() &&;

#if UCXIO_OLD_NAMES
  [[deprecated("use wait_for")]] bool wait_until(std::chrono::steady_clock::time_point deadline,
                                                 std::error_code& ec = throws) {
    return wait_for(detail::left_until(deadline), ec);
  }
#endif

 private:
  friend struct detail::core_access;
  explicit request(detail::operation* operation) noexcept : operation_(operation) {}
  static void drop(detail::operation& held) noexcept;
  void leave(completion_handler keeper);

  detail::operation* operation_ = nullptr;  // this object owns one reference
};

/// The awaiter of `co_await` on a request.
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

// Waits for several requests, of any workers. They drive every worker that has no thread. They end
// no request, and each request reports its own outcome. Empty requests have ended. A handler may
// not destroy or move the requests meanwhile.
// Errors: would_deadlock inside a handler of a worker that would have to be waited for.

/// Waits until one of `requests` has ended, and returns the lowest index of those that have.
/// Returns nothing when none has ended within `limit`, or there are none.
UCXIO_EXPORT std::optional<std::size_t> wait_any(
    std::span<const request> requests,
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max(), std::error_code& ec = throws);

/// Waits until all of `requests` have ended, `limit` at most. Returns whether they have.
UCXIO_EXPORT bool wait_all(std::span<const request> requests,
                           std::chrono::nanoseconds limit = std::chrono::nanoseconds::max(),
                           std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
[[deprecated("use wait_any")]] inline std::optional<std::size_t> wait_any_until(
    std::span<const request> requests, std::chrono::steady_clock::time_point deadline,
    std::error_code& ec = throws) {
  return wait_any(requests, detail::left_until(deadline), ec);
}
[[deprecated("use wait_all")]] inline bool wait_all_until(
    std::span<const request> requests, std::chrono::steady_clock::time_point deadline,
    std::error_code& ec = throws) {
  return wait_all(requests, detail::left_until(deadline), ec);
}
#endif

}  // namespace ucx
