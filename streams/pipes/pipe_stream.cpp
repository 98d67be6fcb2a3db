#include "ucx/pipe_stream.hpp"

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

/// Opens `buffer`, or tells in failbit, `ec` and `message` why it can not be.
template <class... Arguments>
void open_buffer(std::ios& stream, pipe_streambuf& buffer, std::error_code& ec,
                 std::string& message, Arguments&&... arguments) {
  try {
    buffer = pipe_streambuf(std::forward<Arguments>(arguments)...);
  } catch (const ucx::error& failed) {
    ec = failed.code();
    message = failed.what();
    stream.setstate(std::ios_base::failbit);
  }
}

/// The same by the text of a URL.
void open_buffer(std::ios& stream, pipe_streambuf& buffer, std::error_code& ec,
                 std::string& message, const char* where, std::ios_base::openmode mode,
                 const pipe_options& options) {
  const url parsed(std::string_view(where), ec);
  if (!ec) return open_buffer(stream, buffer, ec, message, parsed, mode, options);
  message = "opening a pipe at \"" + std::string(where) + "\": " + ec.message();
  stream.setstate(std::ios_base::failbit);
}

}  // namespace

// The standard part is made over no buffer: ours does not exist yet at that point.

ipipestream::ipipestream() : std::istream(nullptr) { std::ios::rdbuf(&buffer_); }

ipipestream::ipipestream(const char* where, const pipe_options& options) : ipipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, std::ios_base::in, options);
}

ipipestream::ipipestream(const url& where, const pipe_options& options) : ipipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, std::ios_base::in, options);
}

ipipestream::ipipestream(worker& driven, endpoint connection, const pipe_options& options)
    : ipipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, driven, std::move(connection),
              std::ios_base::in, options);
}

ipipestream::ipipestream(ipipestream&& other) noexcept
    : std::istream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      open_error_(other.open_error_),
      open_message_(std::move(other.open_message_)) {
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
  std::swap(open_error_, other.open_error_);
  open_message_.swap(other.open_message_);
}

void ipipestream::close() { close_buffer(*this, buffer_); }

opipestream::opipestream() : std::ostream(nullptr) { std::ios::rdbuf(&buffer_); }

opipestream::opipestream(const char* where, const pipe_options& options) : opipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, std::ios_base::out, options);
}

opipestream::opipestream(const url& where, const pipe_options& options) : opipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, std::ios_base::out, options);
}

opipestream::opipestream(worker& driven, endpoint connection, const pipe_options& options)
    : opipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, driven, std::move(connection),
              std::ios_base::out, options);
}

opipestream::opipestream(opipestream&& other) noexcept
    : std::ostream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      open_error_(other.open_error_),
      open_message_(std::move(other.open_message_)) {
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
  std::swap(open_error_, other.open_error_);
  open_message_.swap(other.open_message_);
}

void opipestream::close() { close_buffer(*this, buffer_); }

pipestream::pipestream() : std::iostream(nullptr) { std::ios::rdbuf(&buffer_); }

pipestream::pipestream(const char* where, const pipe_options& options) : pipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, both_ways, options);
}

pipestream::pipestream(const url& where, const pipe_options& options) : pipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, where, both_ways, options);
}

pipestream::pipestream(worker& driven, endpoint connection, const pipe_options& options)
    : pipestream() {
  open_buffer(*this, buffer_, open_error_, open_message_, driven, std::move(connection), both_ways,
              options);
}

pipestream::pipestream(pipestream&& other) noexcept
    : std::iostream(std::move(other)),
      buffer_(std::move(other.buffer_)),
      open_error_(other.open_error_),
      open_message_(std::move(other.open_message_)) {
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
  std::swap(open_error_, other.open_error_);
  open_message_.swap(other.open_message_);
}

void pipestream::close() { close_buffer(*this, buffer_); }

void pipestream::close_output() {
  std::error_code ec;
  buffer_.close_output(ec);
  if (ec) setstate(std::ios_base::failbit);
}

}  // namespace ucx
