// Streams over pipes between processes, and their buffer.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stop_token>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/to_string.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

/// The choice of a writer with many readers when one of them does not take its bytes.
enum class slow_reader_policy {
  wait,  ///< Waits for that reader: all readers are as fast as the slowest.
  drop,  ///< Drops that reader when one message has waited for `pipe_options::slow_reader_timeout`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(slow_reader_policy value) noexcept;

/// How a pipe is opened. `docs/reference/pipes.md` is its contract.
struct pipe_options {
  /// For a reader: the bytes of each writer that may be on their way or wait in the reader's
  /// memory. Each message counts 256 more. Beyond that the writer waits. For a writer: the bytes
  /// that it has on their way at most, or 8 MiB if that is more. From `min_window` to
  /// `max_window`.
  std::size_t window = std::size_t{8} << 20U;
  /// How long one wait for more to read may take, or a whole write, flush or close. The pipe goes
  /// on after a time-out. Zero: as long as the other process lives.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// For one version: `heartbeat_timeout`.
  detail::old_option<std::chrono::nanoseconds> silence = {};
  /// How long the other process may be silent while something waits for it, until it counts as
  /// dead. For pipes that are opened by URL. For others the worker's `heartbeat_timeout` counts.
  std::chrono::nanoseconds heartbeat_timeout = silence.value_or(std::chrono::seconds(5));
  /// For one version: `connect_timeout`.
  detail::old_option<std::chrono::nanoseconds> meeting = {};
  /// How long opening waits for the other side.
  std::chrono::nanoseconds connect_timeout = meeting.value_or(std::chrono::seconds(30));
  /// After a stop is requested, from any thread, each wait ends with `errc::canceled`, and so does
  /// each later one.
  std::stop_token stop = {};
  /// For a reader: the number of writers that it waits for. It reads their bytes in turns.
  std::size_t writers = 1;
  /// For a writer: the number of readers that it waits for. Each of them gets every byte.
  std::size_t readers = 1;
  /// For one version: `slow_reader`.
  detail::old_option<slow_reader_policy> slow = {};
  slow_reader_policy slow_reader = slow.value_or(slow_reader_policy::wait);
  /// For one version: `slow_reader_timeout`.
  detail::old_option<std::chrono::nanoseconds> patience = {};
  std::chrono::nanoseconds slow_reader_timeout = patience.value_or(std::chrono::seconds(5));
  /// UCX's transports, devices and configuration, for pipes that are opened by URL.
  context_options context = {};

  static constexpr std::size_t min_window = std::size_t{64} << 10U;
  static constexpr std::size_t max_window = std::size_t{1} << 30U;
  static constexpr std::size_t max_peers = 1024;
#if UCXIO_OLD_NAMES
  [[deprecated("min_window")]] static constexpr std::size_t least_window = min_window;
  [[deprecated("max_window")]] static constexpr std::size_t most_window = max_window;
  [[deprecated("max_peers")]] static constexpr std::size_t most_peers = max_peers;
#endif
};

#if UCXIO_OLD_NAMES
using slow_reader [[deprecated("slow_reader_policy")]] = slow_reader_policy;
#endif

namespace detail {
class pipe_engine;
}

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

  /// Returns the 16 random bytes that the server gave to both ends. Where there are several, they
  /// are of the last one. Empty of a pipe over a connection. With an agent they are a `ticket`.
  /// Lifetime: this object's.
  std::span<const std::byte> meeting_key() const noexcept;

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

/// The class of `ipipestream`, `opipestream` and `pipestream`, pipes between processes; no others
/// are made of it. `docs/reference/pipes.md` is the contract. Constructors return when the other
/// side is there, as opening a FIFO does. A stream that can not open sets failbit, and `error()`
/// tells why.
template <class Base, std::ios_base::openmode mode>
class UCXIO_EXPORT basic_pipe_stream : public Base {
 public:
  basic_pipe_stream();
  /// Meets the other side at the server of a URL.
  explicit basic_pipe_stream(std::string_view where, const pipe_options& options = {});
  explicit basic_pipe_stream(const url& where, const pipe_options& options = {});
  /// Makes a pipe of a connection, for sides that found each other in another way.
  basic_pipe_stream(worker& driven, endpoint connection, const pipe_options& options = {});
  basic_pipe_stream(basic_pipe_stream&& other) noexcept;
  basic_pipe_stream& operator=(basic_pipe_stream&& other) noexcept;
  /// Closes. If an exception destroys the stream, gives up. Call `close()` to learn the outcome.
  ~basic_pipe_stream() override;

  void swap(basic_pipe_stream& other) noexcept;
  pipe_streambuf* rdbuf() const noexcept { return const_cast<pipe_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Stops reading: a writer that has more to say fails with `broken_pipe`. Ends writing: returns
  /// when the readers' processes have all bytes, or sets failbit.
  void close();

  // Only some of the three have these. They are templates, and so no symbols of the library:
  // compilers name other constrained members differently.
  /// Ends writing, like `close()`. Reading goes on.
  template <std::same_as<std::iostream> Stream = Base>
  void close_output() {
    std::error_code ec;
    buffer_.close_output(ec);
    if (ec) this->setstate(std::ios_base::failbit);
  }
  /// Returns how many bytes were read.
  template <std::derived_from<std::istream> Stream = Base>
  std::uint64_t received() const noexcept {
    return buffer_.received();
  }
  /// Returns how many bytes every reader's program has taken, as far as the readers have told.
  template <std::derived_from<std::ostream> Stream = Base>
  std::uint64_t consumed() {
    return buffer_.consumed();
  }

  /// Returns why failbit or badbit is set, and that as a text.
  std::error_code error() const noexcept { return not_open_ ? not_open_->code() : buffer_.error(); }
  std::string error_message() const {
    return not_open_ ? not_open_->what() : buffer_.error_message();
  }

 private:
  pipe_streambuf buffer_;
  std::optional<ucx::error> not_open_;  // why
};

/// Reads the bytes that one or several processes write.
using ipipestream = basic_pipe_stream<std::istream, std::ios_base::in>;
/// Writes bytes to one process, or to each of several.
using opipestream = basic_pipe_stream<std::ostream, std::ios_base::out>;
/// Reads the bytes that another process writes, and writes bytes that it reads.
using pipestream = basic_pipe_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

extern template class basic_pipe_stream<std::istream, std::ios_base::in>;
extern template class basic_pipe_stream<std::ostream, std::ios_base::out>;
extern template class basic_pipe_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

template <class Base, std::ios_base::openmode mode>
void swap(basic_pipe_stream<Base, mode>& a, basic_pipe_stream<Base, mode>& b) noexcept {
  a.swap(b);
}

}  // namespace ucx
