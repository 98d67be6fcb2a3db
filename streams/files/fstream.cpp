#include "ucx/fstream.hpp"

#include <utility>

namespace ucx {
namespace {

void show_opened(std::ios& stream, const filebuf* opened) {
  if (opened != nullptr) {
    stream.clear();
  } else {
    stream.setstate(std::ios_base::failbit);
  }
}

void show_closed(std::ios& stream, const filebuf* closed) {
  if (closed == nullptr) stream.setstate(std::ios_base::failbit);
}

}  // namespace

// The standard part is made over no buffer: ours does not exist yet at that point.

ifstream::ifstream() : std::istream(nullptr) { std::ios::rdbuf(&buffer_); }

ifstream::ifstream(const char* name, std::ios_base::openmode mode, const stream_options& options)
    : ifstream() {
  open(name, mode, options);
}

ifstream::ifstream(client& from, std::string_view name, std::ios_base::openmode mode,
                   const stream_options& options)
    : ifstream() {
  open(from, name, mode, options);
}

ifstream::ifstream(ifstream&& other)
    : std::istream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

ifstream& ifstream::operator=(ifstream&& other) {
  std::istream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

ifstream::~ifstream() = default;

void ifstream::swap(ifstream& other) {
  std::istream::swap(other);
  buffer_.swap(other.buffer_);
}

void ifstream::open(const char* name, std::ios_base::openmode mode, const stream_options& options) {
  show_opened(*this, buffer_.open(name, mode | std::ios_base::in, options));
}

void ifstream::open(client& from, std::string_view name, std::ios_base::openmode mode,
                    const stream_options& options) {
  show_opened(*this, buffer_.open(from, name, mode | std::ios_base::in, options));
}

void ifstream::close() { show_closed(*this, buffer_.close()); }

ofstream::ofstream() : std::ostream(nullptr) { std::ios::rdbuf(&buffer_); }

ofstream::ofstream(const char* name, std::ios_base::openmode mode, const stream_options& options)
    : ofstream() {
  open(name, mode, options);
}

ofstream::ofstream(client& from, std::string_view name, std::ios_base::openmode mode,
                   const stream_options& options)
    : ofstream() {
  open(from, name, mode, options);
}

ofstream::ofstream(ofstream&& other)
    : std::ostream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

ofstream& ofstream::operator=(ofstream&& other) {
  std::ostream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

ofstream::~ofstream() = default;

void ofstream::swap(ofstream& other) {
  std::ostream::swap(other);
  buffer_.swap(other.buffer_);
}

void ofstream::open(const char* name, std::ios_base::openmode mode, const stream_options& options) {
  show_opened(*this, buffer_.open(name, mode | std::ios_base::out, options));
}

void ofstream::open(client& from, std::string_view name, std::ios_base::openmode mode,
                    const stream_options& options) {
  show_opened(*this, buffer_.open(from, name, mode | std::ios_base::out, options));
}

void ofstream::close() { show_closed(*this, buffer_.close()); }

fstream::fstream() : std::iostream(nullptr) { std::ios::rdbuf(&buffer_); }

fstream::fstream(const char* name, std::ios_base::openmode mode, const stream_options& options)
    : fstream() {
  open(name, mode, options);
}

fstream::fstream(client& from, std::string_view name, std::ios_base::openmode mode,
                 const stream_options& options)
    : fstream() {
  open(from, name, mode, options);
}

fstream::fstream(fstream&& other)
    : std::iostream(std::move(other)), buffer_(std::move(other.buffer_)) {
  set_rdbuf(&buffer_);
}

fstream& fstream::operator=(fstream&& other) {
  std::iostream::operator=(std::move(other));
  buffer_ = std::move(other.buffer_);
  return *this;
}

fstream::~fstream() = default;

void fstream::swap(fstream& other) {
  std::iostream::swap(other);
  buffer_.swap(other.buffer_);
}

void fstream::open(const char* name, std::ios_base::openmode mode, const stream_options& options) {
  show_opened(*this, buffer_.open(name, mode, options));
}

void fstream::open(client& from, std::string_view name, std::ios_base::openmode mode,
                   const stream_options& options) {
  show_opened(*this, buffer_.open(from, name, mode, options));
}

void fstream::close() { show_closed(*this, buffer_.close()); }

}  // namespace ucx
