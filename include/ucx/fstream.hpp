#pragma once

#include <ios>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/filebuf.hpp"
#include "ucx/stream_options.hpp"

namespace ucx {

class client;

/// The class of `ifstream`, `ofstream` and `fstream`; no others are made of it. Each has the
/// constructors and members of the class with its name in std, for URLs and for local paths.
/// Further ones take options for URLs, or a client and a name that its server publishes. A stream
/// that can not open sets failbit, and `error()` tells why. Each derives from `Base`, not from
/// std::ifstream and the like: a function that is to take either takes a std::istream&.
/// `docs/reference/streams.md` is the contract.
template <class Base, std::ios_base::openmode mode>
class UCXIO_EXPORT basic_file_stream : public Base {
 public:
  basic_file_stream();
  /// Opens a URL or a local path. A name is a text, or a path of std::filesystem or Boost.
  explicit basic_file_stream(const char* name, std::ios_base::openmode how = mode,
                             const stream_options& options = {})
      : basic_file_stream() {
    open(name, how, options);
  }
  template <detail::file_name Name = std::string>
  explicit basic_file_stream(const Name& name, std::ios_base::openmode how = mode,
                             const stream_options& options = {})
      : basic_file_stream() {
    open(name, how, options);
  }
  /// Opens the name `name` that the server of `from` publishes.
  basic_file_stream(client& from, std::string_view name, std::ios_base::openmode how = mode,
                    const stream_options& options = {});
  basic_file_stream(basic_file_stream&& other);
  basic_file_stream& operator=(basic_file_stream&& other);
  /// Closes. Written bytes are then visible, or lost with the connection: call `close()` to know.
  ~basic_file_stream() override;

  void swap(basic_file_stream& other);
  filebuf* rdbuf() const noexcept { return const_cast<filebuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Opens, and clears the state, or sets failbit. An `ifstream` adds `in` to the mode, an
  /// `ofstream` adds `out`.
  template <detail::file_name Name = std::string>
  void open(const Name& name, std::ios_base::openmode how = mode,
            const stream_options& options = {}) {
    show_opened(buffer_.open(name, completed(how), options));
  }
  void open(client& from, std::string_view name, std::ios_base::openmode how = mode,
            const stream_options& options = {});
  /// Flushes and closes. Sets failbit if nothing was open, if closing fails, or if some written
  /// bytes are not known to be visible.
  void close();

  /// Returns why failbit or badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }
  /// Returns the error as a text that names the file or URL.
  std::string error_message() const { return buffer_.error_message(); }

 private:
  static constexpr std::ios_base::openmode completed(std::ios_base::openmode how) noexcept {
    return mode == (std::ios_base::in | std::ios_base::out) ? how : how | mode;
  }
  void show_opened(const filebuf* opened);

  filebuf buffer_;
};

/// Reads a URL or a local file as a `std::ifstream` does.
using ifstream = basic_file_stream<std::istream, std::ios_base::in>;
/// Writes a URL, in place, or a local file as a `std::ofstream` does.
using ofstream = basic_file_stream<std::ostream, std::ios_base::out>;
/// Reads and writes a URL, in place, or a local file as a `std::fstream` does: one joint position.
using fstream = basic_file_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

extern template class basic_file_stream<std::istream, std::ios_base::in>;
extern template class basic_file_stream<std::ostream, std::ios_base::out>;
extern template class basic_file_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

template <class Base, std::ios_base::openmode mode>
void swap(basic_file_stream<Base, mode>& a, basic_file_stream<Base, mode>& b) {
  a.swap(b);
}

}  // namespace ucx
