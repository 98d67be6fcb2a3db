#pragma once

#include <istream>
#include <ostream>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/remote_streambuf.hpp"
#include "ucx/stream_options.hpp"

namespace ucx {

/// Reads a peer's region as a `std::istream`. `docs/reference/streams.md` is the contract.
class UCXIO_EXPORT istream : public std::istream {
 public:
  /// Opens `region`. Sends nothing.
  /// Lifetime: like `remote_streambuf`.
  /// Errors: permission_denied, closed.
  explicit istream(const remote_region& region, const stream_options& options = {},
                   std::error_code& ec = throws);
  istream(istream&& other) noexcept;
  istream& operator=(istream&& other) noexcept;
  ~istream() override;

  void swap(istream& other) noexcept;
  remote_streambuf* rdbuf() const noexcept { return const_cast<remote_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Lets go of the region. Sets failbit if that reports an error.
  void close();
  /// Returns why badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }

 private:
  remote_streambuf buffer_;
};

/// Writes a peer's region, in place from offset 0, as a `std::ostream`.
class UCXIO_EXPORT ostream : public std::ostream {
 public:
  /// Opens `region`. Sends nothing.
  /// Lifetime: like `remote_streambuf`.
  /// Errors: permission_denied, closed.
  explicit ostream(const remote_region& region, const stream_options& options = {},
                   std::error_code& ec = throws);
  ostream(ostream&& other) noexcept;
  ostream& operator=(ostream&& other) noexcept;
  /// Closes. Written bytes are then visible at the peer, or lost with the connection: call
  /// `close()` to know.
  ~ostream() override;

  void swap(ostream& other) noexcept;
  remote_streambuf* rdbuf() const noexcept { return const_cast<remote_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Flushes and lets go of the region. Sets failbit if some written bytes are not known to be
  /// visible at the peer.
  void close();
  /// Returns why badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }

 private:
  remote_streambuf buffer_;
};

/// Reads and writes a peer's region as a `std::iostream` with one joint position.
class UCXIO_EXPORT iostream : public std::iostream {
 public:
  /// Opens `region`. Sends nothing.
  /// Lifetime: like `remote_streambuf`.
  /// Errors: permission_denied, closed.
  explicit iostream(const remote_region& region, const stream_options& options = {},
                    std::error_code& ec = throws);
  iostream(iostream&& other) noexcept;
  iostream& operator=(iostream&& other) noexcept;
  ~iostream() override;

  void swap(iostream& other) noexcept;
  remote_streambuf* rdbuf() const noexcept { return const_cast<remote_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Flushes and lets go of the region. Sets failbit if that reports an error.
  void close();
  /// Returns why badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }

 private:
  remote_streambuf buffer_;
};

inline void swap(istream& a, istream& b) noexcept { a.swap(b); }
inline void swap(ostream& a, ostream& b) noexcept { a.swap(b); }
inline void swap(iostream& a, iostream& b) noexcept { a.swap(b); }

}  // namespace ucx
