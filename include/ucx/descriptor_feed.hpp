#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/url.hpp"

namespace ucx {

class remote_region;

namespace detail {
class feeding_thread;
}

/// How something is fed.
struct descriptor_feed_options {
  /// Bytes at most that are on their way or were not taken yet; beside them the system keeps some
  /// hundred KiB. At least two pieces of 64 KiB.
  std::size_t window = std::size_t{4} << 20U;
  /// How long each transfer may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

/// A descriptor from which all of what is published can be read, from its beginning to its end, of
/// any length, for code that reads a pipe: a thread of this object's feeds it. The first bytes are
/// there at once. It is one end of a pair of sockets, because a pipe can not say that bytes are
/// missing: where the rest could not be had, a read fails with ECONNRESET behind the last of them,
/// in whichever process. The system tells that once: who reads on is told an end, and may ask
/// `error()`.
/// A child of `fork()` has the feed's descriptors, too, until it destroys its copy of this, calls
/// `exec` or ends: the end of everything is told all the same, and that something is missing only
/// then. There `stop()` does nothing, the feed has ended, and its error is `forked_child`.
/// Threads: sharing one object is safe, but for moves and the destructor.
class UCXIO_EXPORT descriptor_feed {
 public:
  /// Opens a URL over the connection that all share. Errors: bad_url (without a name),
  /// invalid_argument (the window), too_many_files; those of `client::open`.
  explicit descriptor_feed(const url& name, const descriptor_feed_options& options = {});
  descriptor_feed(const url& name, const descriptor_feed_options& options, std::error_code& ec);
  /// Feeds what is in `region`, whose worker has to be one that any thread may use.
  explicit descriptor_feed(const remote_region& region,
                           const descriptor_feed_options& options = {});
  descriptor_feed(const remote_region& region, const descriptor_feed_options& options,
                  std::error_code& ec);

  descriptor_feed(descriptor_feed&& other) noexcept;
  descriptor_feed& operator=(descriptor_feed&& other) noexcept;
  /// Stops: who did not read to the end gets ECONNRESET.
  ~descriptor_feed();

  /// Returns the end to read from, which is closed by `exec`; -1 where it was taken, or there is
  /// none. Lifetime: this object's.
  int reader() const noexcept;
  /// Gives it away, for a child or for code that closes what it reads. When all who have it have
  /// closed it, the feed ends.
  file_descriptor take_reader() noexcept;

  /// Waits for `limit` at most, and returns whether the feed has ended: everything was handed over,
  /// nobody reads any more, or something went wrong.
  bool wait_for(std::chrono::nanoseconds limit) const;
  /// Returns why the feed ended before all was handed over; no error before, or if all was.
  /// Errors: canceled (nobody reads any more, or it was stopped); no_memory; what
  /// `remote_region::read_at` documents.
  std::error_code error() const;
  std::string error_message() const;
  /// Returns how many bytes were handed over.
  std::uint64_t fed() const noexcept;

  /// Ends the feed. Bounded: what is on its way is given up.
  void stop() noexcept;

 private:
  std::unique_ptr<detail::feeding_thread> thread_;
};

}  // namespace ucx
