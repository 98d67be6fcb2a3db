#include "ucx/pipe_stream.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ucx/error.hpp"

namespace ucx {
namespace {

/// Opens `buffer`, or sets failbit and returns why it can not be.
template <class... Arguments>
std::optional<error> open_buffer(std::ios& stream, pipe_streambuf& buffer,
                                 Arguments&&... arguments) {
  try {
    buffer = pipe_streambuf(std::forward<Arguments>(arguments)...);
    return std::nullopt;
  } catch (const error& failed) {
    stream.setstate(std::ios_base::failbit);
    return failed;
  }
}

/// As the function above, by the text of a URL.
std::optional<error> open_buffer(std::ios& stream, pipe_streambuf& buffer, std::string_view where,
                                 std::ios_base::openmode mode, const pipe_options& options) {
  std::error_code ec;
  const url parsed(where, ec);
  if (!ec) return open_buffer(stream, buffer, parsed, mode, options);
  stream.setstate(std::ios_base::failbit);
  return error(ec, "opening a pipe at \"" + std::string(where) + "\"");
}

}  // namespace

// The standard part is made over no buffer: ours does not exist yet at that point.
template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::basic_pipe_stream() : Base(nullptr) {
  this->std::ios::rdbuf(&buffer_);
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::basic_pipe_stream(std::string_view where,
                                                 const pipe_options& options)
    : basic_pipe_stream() {
  not_open_ = open_buffer(*this, buffer_, where, mode, options);
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::basic_pipe_stream(const url& where, const pipe_options& options)
    : basic_pipe_stream() {
  not_open_ = open_buffer(*this, buffer_, where, mode, options);
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::basic_pipe_stream(worker& driven, endpoint connection,
                                                 const pipe_options& options)
    : basic_pipe_stream() {
  not_open_ = open_buffer(*this, buffer_, driven, std::move(connection), mode, options);
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::basic_pipe_stream(basic_pipe_stream&& other) noexcept
    : Base(std::move(other)),
      buffer_(std::move(other.buffer_)),
      not_open_(std::move(other.not_open_)) {
  this->set_rdbuf(&buffer_);
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>& basic_pipe_stream<Base, mode>::operator=(
    basic_pipe_stream&& other) noexcept {
  basic_pipe_stream taken(std::move(other));
  swap(taken);
  return *this;
}

template <class Base, std::ios_base::openmode mode>
basic_pipe_stream<Base, mode>::~basic_pipe_stream() = default;

template <class Base, std::ios_base::openmode mode>
void basic_pipe_stream<Base, mode>::swap(basic_pipe_stream& other) noexcept {
  Base::swap(other);
  buffer_.swap(other.buffer_);
  not_open_.swap(other.not_open_);
}

template <class Base, std::ios_base::openmode mode>
void basic_pipe_stream<Base, mode>::close() {
  std::error_code ec;
  if (!buffer_.is_open()) ec = errc::closed;
  if (!ec) buffer_.close(ec);
  if (ec) this->setstate(std::ios_base::failbit);
}

template class basic_pipe_stream<std::istream, std::ios_base::in>;
template class basic_pipe_stream<std::ostream, std::ios_base::out>;
template class basic_pipe_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

}  // namespace ucx
