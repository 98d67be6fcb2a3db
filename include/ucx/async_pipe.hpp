// Pipes between processes for programs that must not wait: event loops, coroutines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <span>

#include "ucx/endpoint.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class async_pipe_core;
}

/// One end of a pipe, as requests: no call of it waits. The other end may be a stream.
/// `docs/reference/pipes.md` is the contract of both. Work is done where the worker is driven: no
/// thread of the library is needed but the resolver's.
///
/// Requests of one direction are done in the order in which they were started; any number may be
/// under way. The memory of a request has to live until it is done or gone. A deadline
/// (`pipe_options::timeout`; zero: none), `cancel()`, a stop (`pipe_options::stop`) and the
/// destructor end a request at once. None of these waits. The pipe then goes on, or does not:
///
///     canceled              | after that
///     start_read            | nothing was read: the pipe goes on
///     start_write           | part of it may be sent; see `start_write`
///     start_flush           | the bytes are kept, and go with the next flush or close
///     start_close(_output)  | the pipe is given up, as by `abort()`
///
/// Threads: as the worker's.
class UCXIO_EXPORT async_pipe {
 public:
  /// Makes an end of no pipe. Its requests fail with `closed`.
  async_pipe() noexcept;

  /// Makes a pipe of a connection, as `pipe_streambuf` does. `made` is let go of first.
  /// Completes: `made` is the pipe. For a writer that is when the other side begins to read.
  /// Lifetime: `driven`, until the pipe is gone and its requests are done; if that was in a
  /// handler, until this has returned. `made`, until the request is done or gone. Errors: those of
  /// `pipe_streambuf`.
  static request start_open(worker& driven, endpoint connection, std::ios_base::openmode mode,
                            async_pipe& made, const pipe_options& options = pipe_options());
  /// Meets the other end at the server of a URL, over a worker of the caller's. Its context needs
  /// the transports that the URL's scheme means. Its options count, and not
  /// `pipe_options::heartbeat_timeout` and `context`. Completes, Lifetime: as the other form.
  /// Errors: those of `pipe_streambuf` and `client::start_connect`; not_supported (reading at a
  /// server without an IP address).
  static request start_open(worker& driven, const url& where, std::ios_base::openmode mode,
                            async_pipe& made, const pipe_options& options = pipe_options());

  async_pipe(async_pipe&& other) noexcept;
  async_pipe& operator=(async_pipe&& other) noexcept;
  /// Gives up as `abort()` does, unless `start_close()` is under way: that goes on.
  ~async_pipe();

  bool is_open() const noexcept;

  /// Reads some bytes, and sets `count`: as many as are there, at least one, at most all of `into`.
  /// Completes: when bytes are there, or none can follow. A `count` of 0 is the clean end.
  /// Errors: connection_reset (the writer died, or gave up, before its end), protocol_error,
  /// closed, permission_denied (a pipe that is only written); timed_out, canceled; invalid_argument
  /// (memory of two places). Bytes that came before a failure are read first. Cost: one copy,
  /// within progress. A device's memory takes the time of the driver's copy.
  request start_read(std::span<std::byte> into, std::size_t& count);

  /// Writes all of `from`. Up to 255.5 KiB are never split, nor mixed with those of other writers.
  /// Completes: when the memory can be used again: the bytes are in messages, the last of which may
  /// wait for more, or for `start_flush()`. Beyond the reader's window it waits for the reader.
  /// Errors: broken_pipe, connection_reset, protocol_error, no_memory, closed, permission_denied (a
  /// pipe that is only read); timed_out, canceled. Closing then gives the pipe up, unless as many
  /// bytes are written later: the reader is not to take a part for the whole.
  /// Cost: one copy, within progress.
  request start_write(std::span<const std::byte> from);
  /// Sends what was written.
  /// Completes: when it is on its way. Nothing is known about the reader.
  /// Errors: those of `start_write`.
  request start_flush();

  /// Ends writing. Reading goes on. Nothing can be written behind it.
  /// Completes: when the readers' processes have all bytes.
  /// Errors: broken_pipe (a reader left before it had all), connection_reset, timed_out, canceled:
  /// the pipe was then given up, and the reader fails.
  request start_close_output();
  /// Stops reading at once: reads under way end with `closed`. Ends writing, and lets go of the
  /// connection.
  /// Completes: when the readers' processes have all bytes, and the connection is closed.
  /// Errors: those of `start_close_output()`.
  request start_close();
  /// Gives up: the other end fails. Requests under way end with `closed`.
  void abort() noexcept;

  /// Returns how many bytes were read here.
  std::uint64_t received() const noexcept;
  /// Returns how many bytes were sent: written and flushed.
  std::uint64_t sent() const noexcept;

 private:
  friend class detail::async_pipe_core;
  explicit async_pipe(std::shared_ptr<detail::async_pipe_core> core) noexcept;

  std::shared_ptr<detail::async_pipe_core> core_;
};

}  // namespace ucx
