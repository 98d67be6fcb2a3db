#include "ucx/pipe_stream.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ucx/error.hpp"

namespace ucx {
namespace {

constexpr std::ios_base::openmode both_ways = std::ios_base::in | std::ios_base::out;

void close_buffer(std::ios& stream, pipe_streambuf& buffer) {
  std::error_code ec;
  if (!buffer.is_open()) ec = errc::closed;
  if (!ec) buffer.close(ec);
  if (ec) stream.setstate(std::ios_base::failbit);
}

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

/// The same by the text of a URL.
std::optional<error> open_buffer(std::ios& stream, pipe_streambuf& buffer, const char* where,
                                 std::ios_base::openmode mode, const pipe_options& options) {
  std::error_code ec;
  const url parsed(std::string_view(where), ec);
  if (!ec) return open_buffer(stream, buffer, parsed, mode, options);
  stream.setstate(std::ios_base::failbit);
  return error(ec, "opening a pipe at \"" + std::string(where) + "\"");
}

}  // namespace

// The standard part is made over no buffer: ours does not exist yet at that point.

ipipestream::ipipestream() : std::istream(nullptr) { std::ios::rdbuf(&buffer_); }

ipipestream::ipipestream(const char* where, const pipe_options& options) : ipipestream() {
  not_open_ = open_buffer(*this, buffer_, where, std::ios_base::in, options);
}

ipipestream::ipipestream(const url& where, const pipe_options& options) : ipipestream() {
  not_open_ = open_buffer(*this, buffer_, where, std::ios_base::in, options);
}

ipipestream::ipipestream(worker& driven, endpoint connection, const pipe_options& options)
    : ipipestream() {
  not_open_ =
      open_buffer(*this, buffer_, driven, std::move(connection), std::ios_base::in, options);
}

ipipestream::ipipestream(ipipestream&& other) noexcept
    : std::istream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      not_open_(std::move(other.not_open_)) {
  set_rdbuf(&buffer_);
}

ipipestream& ipipestream::operator=(ipipestream&& other) noexcept {
  ipipestream taken(std::move(other));
  swap(taken);
  return *this;
}

ipipestream::~ipipestream() = default;

void ipipestream::swap(ipipestream& other) noexcept {
  std::istream::swap(other);
  buffer_.swap(other.buffer_);
  not_open_.swap(other.not_open_);
}

void ipipestream::close() { close_buffer(*this, buffer_); }

opipestream::opipestream() : std::ostream(nullptr) { std::ios::rdbuf(&buffer_); }

opipestream::opipestream(const char* where, const pipe_options& options) : opipestream() {
  not_open_ = open_buffer(*this, buffer_, where, std::ios_base::out, options);
}

opipestream::opipestream(const url& where, const pipe_options& options) : opipestream() {
  not_open_ = open_buffer(*this, buffer_, where, std::ios_base::out, options);
}

opipestream::opipestream(worker& driven, endpoint connection, const pipe_options& options)
    : opipestream() {
  not_open_ =
      open_buffer(*this, buffer_, driven, std::move(connection), std::ios_base::out, options);
}

opipestream::opipestream(opipestream&& other) noexcept
    : std::ostream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      not_open_(std::move(other.not_open_)) {
  set_rdbuf(&buffer_);
}

opipestream& opipestream::operator=(opipestream&& other) noexcept {
  opipestream taken(std::move(other));
  swap(taken);
  return *this;
}

opipestream::~opipestream() = default;

void opipestream::swap(opipestream& other) noexcept {
  std::ostream::swap(other);
  buffer_.swap(other.buffer_);
  not_open_.swap(other.not_open_);
}

void opipestream::close() { close_buffer(*this, buffer_); }

pipestream::pipestream() : std::iostream(nullptr) { std::ios::rdbuf(&buffer_); }

pipestream::pipestream(const char* where, const pipe_options& options) : pipestream() {
  not_open_ = open_buffer(*this, buffer_, where, both_ways, options);
}

pipestream::pipestream(const url& where, const pipe_options& options) : pipestream() {
  not_open_ = open_buffer(*this, buffer_, where, both_ways, options);
}

pipestream::pipestream(worker& driven, endpoint connection, const pipe_options& options)
    : pipestream() {
  not_open_ = open_buffer(*this, buffer_, driven, std::move(connection), both_ways, options);
}

pipestream::pipestream(pipestream&& other) noexcept
    : std::iostream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      not_open_(std::move(other.not_open_)) {
  set_rdbuf(&buffer_);
}

pipestream& pipestream::operator=(pipestream&& other) noexcept {
  pipestream taken(std::move(other));
  swap(taken);
  return *this;
}

pipestream::~pipestream() = default;

void pipestream::swap(pipestream& other) noexcept {
  std::iostream::swap(other);
  buffer_.swap(other.buffer_);
  not_open_.swap(other.not_open_);
}

void pipestream::close() { close_buffer(*this, buffer_); }

void pipestream::close_output() {
  std::error_code ec;
  buffer_.close_output(ec);
  if (ec) setstate(std::ios_base::failbit);
}

}  // namespace ucx
