#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <span>
#include <streambuf>
#include <string>
#include <system_error>

#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/transfer_method.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class pipe_engine;
}  // namespace detail

/// A `std::streambuf` over a pipe to another process: bytes that one end writes are read at the
/// other. `docs/reference/pipes.md` is its contract; in short: a reader sees the end only after a
/// clean `close()` of the writer. Anything else that ends the pipe is a failure. A failed read
/// throws: the stream shows badbit, never eofbit. A failed write returns eof, a short count or -1.
/// `error()` has the cause. The caller's memory may be a device's (docs/how-to/gpu.md). If its
/// driver fails, the error is `io_error`. Bytes that were not copied can then still be read, or
/// were not written.
/// Threads: one thread at a time, as for every streambuf. Another one may request a stop
/// (`pipe_options::stop`).
class UCXIO_EXPORT pipe_streambuf : public std::streambuf {
 public:
  /// Makes a streambuf over nothing. Every operation on it fails with `closed`.
  pipe_streambuf();
  /// Meets the other end at the server of a URL, which has to have a `pipe_broker`. Reads (`in`),
  /// writes (`out`), or does both. Either side may come first. Returns when they are connected.
  /// Errors: timed_out (no other end came within `options.connect_timeout`), not_supported (the
  /// server has no broker, or one of a version that needs an IP address), no_memory, busy, bad_url
  /// (without a name), invalid_argument (options that make no sense), canceled; those of `client`
  /// and `endpoint`.
  pipe_streambuf(const url& where, std::ios_base::openmode mode, const pipe_options& options = {},
                 std::error_code& ec = throws);
  /// Makes a pipe of a connection. The other side does so, too, for the other direction, and sends
  /// no other messages with these tags. A reader returns at once. A writer returns when the other
  /// side begins to read.
  /// Lifetime: `driven`, its worker, until this is closed. Both sides' workers have to make
  /// progress while either waits.
  /// Errors: those of the constructor by URL.
  pipe_streambuf(worker& driven, endpoint connection, std::ios_base::openmode mode,
                 const pipe_options& options = {}, std::error_code& ec = throws);

  pipe_streambuf(pipe_streambuf&& other) noexcept;
  pipe_streambuf& operator=(pipe_streambuf&& other) noexcept;
  /// Closes, and ignores the errors of `close()`. If an exception destroys the object, gives up as
  /// `abort()` does. An exception that was on its way at opening does not count.
  ~pipe_streambuf() override;
  void swap(pipe_streambuf& other) noexcept;

  bool is_open() const noexcept;

  /// Ends writing: sends the remaining bytes, and returns when the readers' processes have all of
  /// them. Reading goes on.
  /// Errors: broken_pipe (a reader left before it had all), connection_reset, timed_out, canceled:
  /// the pipe was then given up, and the reader fails.
  void close_output(std::error_code& ec = throws);
  /// Stops reading, ends writing, and lets go of the connection. Idempotent.
  /// Errors: those of `close_output()`.
  void close(std::error_code& ec = throws);
  /// Gives up: a reader fails with connection_reset, a writer with broken_pipe.
  void abort() noexcept;

  /// Returns the cause of the last failure. The next operation that succeeds clears it.
  std::error_code error() const noexcept;
  /// Returns the error as a text that says how far the pipe came; empty without an error.
  std::string error_message() const;

  /// Returns how many bytes were read here.
  std::uint64_t received() const noexcept;
  /// Returns how many bytes were sent: written and flushed.
  std::uint64_t sent() const noexcept;
  /// Returns how many sent bytes every reader's program has taken, as far as the readers have told.
  /// `error()` then tells whether the pipe is known to be broken. Does not wait.
  std::uint64_t consumed();
  /// Returns how the bytes move: `mapped`, where a writer puts them into memory of a reader on its
  /// host, else `message`. A reader knows it after the first such bytes were read.
  ucx::transfer_method transfer_method() const noexcept;
  /// Returns how many readers are connected; after `close()`, how many have had all bytes.
  std::size_t readers() const noexcept;

  // These members avoid a copy: they give the stream's own memory. They throw when they fail.
  /// Waits until there is something to read, and returns those bytes; empty at the end.
  /// Lifetime: until the next operation.
  std::span<const char> available();
  /// Takes the first `count` bytes of `available()`.
  void consume(std::size_t count);
  /// Waits for a place to write to, and returns it: at least one byte.
  /// Lifetime: until the next operation.
  std::span<char> prepare();
  /// Writes the first `count` bytes of `prepare()`, as if they had been put.
  void commit(std::size_t count);

#if UCXIO_OLD_NAMES
  [[deprecated("transfer_method()")]] ucx::transfer_method way() const noexcept {
    return transfer_method();
  }
#endif

 protected:
  int_type underflow() override;
  int_type pbackfail(int_type c) override;
  std::streamsize xsgetn(char* into, std::streamsize count) override;
  std::streamsize showmanyc() override;
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* from, std::streamsize count) override;
  int sync() override;
  pos_type seekoff(off_type offset, std::ios_base::seekdir from,
                   std::ios_base::openmode which) override;

 private:
  bool is_parents();
  bool is_usable();
  void close_input() noexcept;
  std::error_code end_output();
  std::error_code end();
  bool flush_area();
  void leave_area() noexcept;
  bool refill();
  void restore(std::span<const char> read);
  bool ready_to_write();
  std::streamsize write(const char* from, std::streamsize count);
  std::uint64_t written() const noexcept;
  void show_put_area();
  [[noreturn]] void throw_error() const;
  void end_with(std::error_code outcome, std::error_code& ec) const;

  std::unique_ptr<detail::pipe_engine> engine_;
};

inline void swap(pipe_streambuf& a, pipe_streambuf& b) noexcept { a.swap(b); }

}  // namespace ucx
