#pragma once

#include <ios>
#include <istream>
#include <ostream>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/remote_streambuf.hpp"
#include "ucx/stream_options.hpp"

namespace ucx {

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
