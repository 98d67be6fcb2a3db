#pragma once

#include <concepts>
#include <cstdint>
#include <ios>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/pipe_streambuf.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx {

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
