#include "ucx/stream.hpp"

#include <utility>

namespace ucx {
namespace {

void close_buffer(std::ios& stream, remote_streambuf& buffer) {
  std::error_code ec;
  buffer.close(ec);
  if (ec) stream.setstate(std::ios_base::failbit);
}

}  // namespace

// The standard part is made over no buffer: ours does not exist yet at that point.

istream::istream(const remote_region& region, const stream_options& options, std::error_code& ec)
    : std::istream(nullptr), buffer_(region, std::ios_base::in, options, ec) {
  std::ios::rdbuf(&buffer_);
  if (ec) setstate(std::ios_base::badbit);
}

istream::istream(istream&& other) noexcept
    : std::istream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

istream& istream::operator=(istream&& other) noexcept {
  std::istream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

istream::~istream() = default;

void istream::swap(istream& other) noexcept {
  std::istream::swap(other);
  buffer_.swap(other.buffer_);
}

void istream::close() { close_buffer(*this, buffer_); }

ostream::ostream(const remote_region& region, const stream_options& options, std::error_code& ec)
    : std::ostream(nullptr), buffer_(region, std::ios_base::out, options, ec) {
  std::ios::rdbuf(&buffer_);
  if (ec) setstate(std::ios_base::badbit);
}

ostream::ostream(ostream&& other) noexcept
    : std::ostream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

ostream& ostream::operator=(ostream&& other) noexcept {
  std::ostream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

ostream::~ostream() = default;

void ostream::swap(ostream& other) noexcept {
  std::ostream::swap(other);
  buffer_.swap(other.buffer_);
}

void ostream::close() { close_buffer(*this, buffer_); }

iostream::iostream(const remote_region& region, const stream_options& options, std::error_code& ec)
    : std::iostream(nullptr), buffer_(region, std::ios_base::in | std::ios_base::out, options, ec) {
  std::ios::rdbuf(&buffer_);
  if (ec) setstate(std::ios_base::badbit);
}

iostream::iostream(iostream&& other) noexcept
    : std::iostream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

iostream& iostream::operator=(iostream&& other) noexcept {
  std::iostream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

iostream::~iostream() = default;

void iostream::swap(iostream& other) noexcept {
  std::iostream::swap(other);
  buffer_.swap(other.buffer_);
}

void iostream::close() { close_buffer(*this, buffer_); }

}  // namespace ucx
