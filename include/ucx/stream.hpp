// Streams over a peer's region, and their buffer.
#pragma once

#include <ios>
#include <istream>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream_options.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class stream_engine;
}

class filebuf;

/// A `std::streambuf` over a peer's region: buffered, seekable, reading ahead and writing behind.
/// `docs/reference/streams.md` is its contract; in short: it has one joint position, as
/// `std::filebuf`. A seek never touches the network. A failed read throws: the stream shows badbit,
/// never eofbit. Every other failed call returns eof, a short count or -1. `error()` has the cause.
/// Threads: one thread at a time, as for every streambuf, and as the worker's.
class UCXIO_EXPORT remote_streambuf : public std::streambuf {
 public:
  /// Makes a streambuf over nothing. Every operation on it fails.
  remote_streambuf();
  /// Makes a streambuf over `region` that allows the accesses of `mode`: in, out, or both. `ate`
  /// starts at the end. `trunc` and `app` are `not_supported`, because the size is fixed. Sends
  /// nothing.
  /// Lifetime: the region's core is kept; the handle may move or die.
  /// Errors: permission_denied (mode against granted), not_supported, closed, invalid_argument
  /// (neither in nor out; a window that is too small or too large).
  explicit remote_streambuf(const remote_region& region,
                            std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
                            const stream_options& options = {}, std::error_code& ec = throws);

  remote_streambuf(remote_streambuf&& other) noexcept;
  remote_streambuf& operator=(remote_streambuf&& other) noexcept;
  /// Closes, and ignores the errors of `close()`.
  ~remote_streambuf() override;

  void swap(remote_streambuf& other) noexcept;

  bool is_open() const noexcept;

  /// Flushes, then lets go of the region. Later operations fail with `errc::closed`. Idempotent.
  /// Errors: the first failure that was not reported before.
  void close(std::error_code& ec = throws);

  /// Returns the cause of the last failure. The next operation that succeeds clears it.
  std::error_code error() const noexcept;
  /// Returns the error as a text that says what was tried, and on what; empty without an error.
  std::string error_message() const;

  /// Returns the bytes in flight and the windows. Costs nothing, makes no progress.
  stream_statistics statistics() const noexcept;

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
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override;

 private:
  friend class filebuf;
  explicit remote_streambuf(std::unique_ptr<detail::stream_engine> engine) noexcept;

  std::unique_ptr<detail::stream_engine> engine_;
};

inline void swap(remote_streambuf& a, remote_streambuf& b) noexcept { a.swap(b); }

/// The class of `istream`, `ostream` and `iostream`; no others are made of it. Each reads or writes
/// a peer's region as the class with its name in std, from which it derives.
/// `docs/reference/streams.md` is the contract.
template <class Base, std::ios_base::openmode mode>
class UCXIO_EXPORT basic_region_stream : public Base {
 public:
  /// Opens `region`. Sends nothing.
  /// Lifetime: like `remote_streambuf`.
  /// Errors: permission_denied, closed.
  explicit basic_region_stream(const remote_region& region, const stream_options& options = {},
                               std::error_code& ec = throws);
  basic_region_stream(basic_region_stream&& other) noexcept;
  basic_region_stream& operator=(basic_region_stream&& other) noexcept;
  /// Closes. Written bytes are then visible at the peer, or lost with the connection: call
  /// `close()` to know.
  ~basic_region_stream() override;

  void swap(basic_region_stream& other) noexcept;
  remote_streambuf* rdbuf() const noexcept { return const_cast<remote_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Flushes and lets go of the region. Sets failbit if some written bytes are not known to be
  /// visible at the peer, or if closing reports another error.
  void close();
  /// Returns why badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }

 private:
  remote_streambuf buffer_;
};

/// Reads a peer's region as a `std::istream`.
using istream = basic_region_stream<std::istream, std::ios_base::in>;
/// Writes a peer's region, in place from offset 0, as a `std::ostream`.
using ostream = basic_region_stream<std::ostream, std::ios_base::out>;
/// Reads and writes a peer's region as a `std::iostream` with one joint position.
using iostream = basic_region_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

extern template class basic_region_stream<std::istream, std::ios_base::in>;
extern template class basic_region_stream<std::ostream, std::ios_base::out>;
extern template class basic_region_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

template <class Base, std::ios_base::openmode mode>
void swap(basic_region_stream<Base, mode>& a, basic_region_stream<Base, mode>& b) noexcept {
  a.swap(b);
}

}  // namespace ucx
