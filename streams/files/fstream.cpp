#include "ucx/fstream.hpp"

#include <utility>

namespace ucx {

// The standard part is made over no buffer: ours does not exist yet at that point.
template <class Base, std::ios_base::openmode mode>
basic_file_stream<Base, mode>::basic_file_stream() : Base(nullptr) {
  this->std::ios::rdbuf(&buffer_);
}

template <class Base, std::ios_base::openmode mode>
basic_file_stream<Base, mode>::basic_file_stream(client& from, std::string_view name,
                                                 std::ios_base::openmode how,
                                                 const stream_options& options)
    : basic_file_stream() {
  open(from, name, how, options);
}

template <class Base, std::ios_base::openmode mode>
basic_file_stream<Base, mode>::basic_file_stream(basic_file_stream&& other)
    : Base(std::move(other)), buffer_(std::move(other.buffer_)) {
  this->set_rdbuf(&buffer_);
}

template <class Base, std::ios_base::openmode mode>
basic_file_stream<Base, mode>& basic_file_stream<Base, mode>::operator=(basic_file_stream&& other) {
  Base::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

template <class Base, std::ios_base::openmode mode>
basic_file_stream<Base, mode>::~basic_file_stream() = default;

template <class Base, std::ios_base::openmode mode>
void basic_file_stream<Base, mode>::swap(basic_file_stream& other) {
  Base::swap(other);
  buffer_.swap(other.buffer_);
}

template <class Base, std::ios_base::openmode mode>
void basic_file_stream<Base, mode>::open(client& from, std::string_view name,
                                         std::ios_base::openmode how,
                                         const stream_options& options) {
  show_opened(buffer_.open(from, name, completed(how), options));
}

template <class Base, std::ios_base::openmode mode>
void basic_file_stream<Base, mode>::show_opened(const filebuf* opened) {
  if (opened != nullptr) {
    this->clear();
  } else {
    this->setstate(std::ios_base::failbit);
  }
}

template <class Base, std::ios_base::openmode mode>
void basic_file_stream<Base, mode>::close() {
  if (buffer_.close() == nullptr) this->setstate(std::ios_base::failbit);
}

template class basic_file_stream<std::istream, std::ios_base::in>;
template class basic_file_stream<std::ostream, std::ios_base::out>;
template class basic_file_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

}  // namespace ucx
