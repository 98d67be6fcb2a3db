#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx {

class remote_region;

namespace detail {
class feeding_thread;
}

// May change or go with any version, as everything in `ucx::experimental`.
namespace experimental {

/// The options of a feed.
struct read_fd_feed_options {
  /// The most bytes that are on their way, or that the reader has not taken. The system keeps some
  /// hundred KiB more. At least two pieces of 64 KiB.
  std::size_t window = std::size_t{4} << 20U;
  /// How long each transfer may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

/// A descriptor for code that reads a pipe. A reader gets a published name or region through it,
/// from beginning to end, of any length. A thread of this object feeds it, and the first bytes come
/// at once. The descriptor is one end of a pair of sockets, because a pipe can not say that bytes
/// are missing. If the rest could not be had, a read after the last byte fails with ECONNRESET, in
/// every process. The system reports that once: later reads return the end, and `error()` still
/// tells. A child of `fork()` holds the feed's descriptors, too, until it destroys its copy of this
/// object, calls `exec` or ends. Meanwhile a reader still gets the end of a complete feed. It
/// learns that bytes are missing only afterwards. In the child `stop()` does nothing, the feed has
/// ended, and its error is `forked_child`.
/// Threads: sharing one object is safe, but for moves and the destructor.
class UCXIO_EXPORT read_fd_feed {
 public:
  /// Opens a URL over the process's shared connection (`client::shared`).
  /// Errors: bad_url (without a name), invalid_argument (the window), too_many_files; those of
  /// `client::open`.
  explicit read_fd_feed(const url& name, const read_fd_feed_options& options = {},
                        std::error_code& ec = throws);
  /// Feeds the bytes of `region`. Its worker has to be one that any thread may use.
  explicit read_fd_feed(const remote_region& region, const read_fd_feed_options& options = {},
                        std::error_code& ec = throws);

  read_fd_feed(read_fd_feed&& other) noexcept;
  read_fd_feed& operator=(read_fd_feed&& other) noexcept;
  /// Stops the feed: a reader that has not read to the end gets ECONNRESET.
  ~read_fd_feed();

  /// Returns the descriptor to read from; -1 where it was taken, or there is none. `exec` closes
  /// it.
  /// Lifetime: this object's.
  int fd() const noexcept;
  /// Gives the descriptor to the caller, for a child or for code that closes what it reads. The
  /// feed ends when every copy of it is closed.
  file_descriptor release_fd() noexcept;

  /// Waits for `limit` at most, and returns whether the feed has ended. It ends when all bytes were
  /// handed over, when every reader has closed its descriptor, or with an error.
  bool wait_for(std::chrono::nanoseconds limit) const;
  /// Returns why the feed ended before all bytes were handed over; no error while it runs, and
  /// after all.
  /// Errors: canceled (every reader has closed its descriptor, or the feed was stopped); no_memory;
  /// those of `remote_region::read_at`.
  std::error_code error() const;
  std::string error_message() const;
  /// Returns how many bytes were handed over.
  std::uint64_t bytes_fed() const noexcept;

  /// Ends the feed, in bounded time: bytes on their way are given up.
  void stop() noexcept;

#if UCXIO_OLD_NAMES
  [[deprecated("fd()")]] int reader() const noexcept { return fd(); }
  [[deprecated("release_fd()")]] file_descriptor take_reader() noexcept { return release_fd(); }
  [[deprecated("bytes_fed()")]] std::uint64_t fed() const noexcept { return bytes_fed(); }
#endif

 private:
  std::unique_ptr<detail::feeding_thread> thread_;
};

}  // namespace experimental
}  // namespace ucx
