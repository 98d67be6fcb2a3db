#include "ucx/stream.hpp"

#include <utility>

namespace ucx {

// The standard part is made over no buffer: ours does not exist yet at that point.
template <class Base, std::ios_base::openmode mode>
basic_region_stream<Base, mode>::basic_region_stream(const remote_region& region,
                                                     const stream_options& options,
                                                     std::error_code& ec)
    : Base(nullptr), buffer_(region, mode, options, ec) {
  this->std::ios::rdbuf(&buffer_);
  if (ec) this->setstate(std::ios_base::badbit);
}

template <class Base, std::ios_base::openmode mode>
basic_region_stream<Base, mode>::basic_region_stream(basic_region_stream&& other) noexcept
    : Base(std::move(other)), buffer_(std::move(other.buffer_)) {
  this->set_rdbuf(&buffer_);
}

template <class Base, std::ios_base::openmode mode>
basic_region_stream<Base, mode>& basic_region_stream<Base, mode>::operator=(
    basic_region_stream&& other) noexcept {
  Base::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

template <class Base, std::ios_base::openmode mode>
basic_region_stream<Base, mode>::~basic_region_stream() = default;

template <class Base, std::ios_base::openmode mode>
void basic_region_stream<Base, mode>::swap(basic_region_stream& other) noexcept {
  Base::swap(other);
  buffer_.swap(other.buffer_);
}

template <class Base, std::ios_base::openmode mode>
void basic_region_stream<Base, mode>::close() {
  std::error_code ec;
  buffer_.close(ec);
  if (ec) this->setstate(std::ios_base::failbit);
}

template class basic_region_stream<std::istream, std::ios_base::in>;
template class basic_region_stream<std::ostream, std::ios_base::out>;
template class basic_region_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

}  // namespace ucx
