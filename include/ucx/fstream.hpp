#pragma once

#include <filesystem>
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

// Each class has the constructors and members of the class with this name in std, for URLs and for
// local paths. Further ones take options for URLs, or a client and a name that its server
// publishes. A stream that can not open sets failbit, and `error()` tells why. The classes do not
// derive from std::ifstream and the like: a function that is to take either takes a std::istream&.

/// Reads a URL or a local file as a `std::ifstream` does. `docs/reference/streams.md` is the
/// contract.
class UCXIO_EXPORT ifstream : public std::istream {
 public:
  ifstream();
  explicit ifstream(const char* name, std::ios_base::openmode mode = std::ios_base::in,
                    const stream_options& options = {});
  explicit ifstream(const std::string& name, std::ios_base::openmode mode = std::ios_base::in,
                    const stream_options& options = {})
      : ifstream(name.c_str(), mode, options) {}
  template <detail::path Path>
  explicit ifstream(const Path& name, std::ios_base::openmode mode = std::ios_base::in,
                    const stream_options& options = {})
      : ifstream(name.c_str(), mode, options) {}
  ifstream(client& from, std::string_view name, std::ios_base::openmode mode = std::ios_base::in,
           const stream_options& options = {});
  ifstream(ifstream&& other);
  ifstream& operator=(ifstream&& other);
  ~ifstream() override;

  void swap(ifstream& other);
  filebuf* rdbuf() const noexcept { return const_cast<filebuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Opens with `mode | std::ios::in`, and clears the state, or sets failbit.
  void open(const char* name, std::ios_base::openmode mode = std::ios_base::in,
            const stream_options& options = {});
  void open(const std::string& name, std::ios_base::openmode mode = std::ios_base::in,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  template <detail::path Path>
  void open(const Path& name, std::ios_base::openmode mode = std::ios_base::in,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  void open(client& from, std::string_view name, std::ios_base::openmode mode = std::ios_base::in,
            const stream_options& options = {});
  /// Closes. Sets failbit if nothing was open, or if closing fails.
  void close();

  /// Returns why failbit or badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }
  /// Returns the error as a text that names the file or URL.
  std::string error_message() const { return buffer_.error_message(); }

 private:
  filebuf buffer_;
};

/// Writes a URL, in place, or a local file as a `std::ofstream` does.
class UCXIO_EXPORT ofstream : public std::ostream {
 public:
  ofstream();
  explicit ofstream(const char* name, std::ios_base::openmode mode = std::ios_base::out,
                    const stream_options& options = {});
  explicit ofstream(const std::string& name, std::ios_base::openmode mode = std::ios_base::out,
                    const stream_options& options = {})
      : ofstream(name.c_str(), mode, options) {}
  template <detail::path Path>
  explicit ofstream(const Path& name, std::ios_base::openmode mode = std::ios_base::out,
                    const stream_options& options = {})
      : ofstream(name.c_str(), mode, options) {}
  ofstream(client& from, std::string_view name, std::ios_base::openmode mode = std::ios_base::out,
           const stream_options& options = {});
  ofstream(ofstream&& other);
  ofstream& operator=(ofstream&& other);
  /// Closes. Written bytes are then visible, or lost with the connection: call `close()` to know.
  ~ofstream() override;

  void swap(ofstream& other);
  filebuf* rdbuf() const noexcept { return const_cast<filebuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Opens with `mode | std::ios::out`, and clears the state, or sets failbit.
  void open(const char* name, std::ios_base::openmode mode = std::ios_base::out,
            const stream_options& options = {});
  void open(const std::string& name, std::ios_base::openmode mode = std::ios_base::out,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  template <detail::path Path>
  void open(const Path& name, std::ios_base::openmode mode = std::ios_base::out,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  void open(client& from, std::string_view name, std::ios_base::openmode mode = std::ios_base::out,
            const stream_options& options = {});
  /// Flushes and closes. Sets failbit if nothing was open, or if some written bytes are not known
  /// to be visible.
  void close();

  /// Returns why failbit or badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }
  /// Returns the error as a text that names the file or URL.
  std::string error_message() const { return buffer_.error_message(); }

 private:
  filebuf buffer_;
};

/// Reads and writes a URL, in place, or a local file as a `std::fstream` does: one joint position.
class UCXIO_EXPORT fstream : public std::iostream {
 public:
  fstream();
  explicit fstream(const char* name,
                   std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
                   const stream_options& options = {});
  explicit fstream(const std::string& name,
                   std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
                   const stream_options& options = {})
      : fstream(name.c_str(), mode, options) {}
  template <detail::path Path>
  explicit fstream(const Path& name,
                   std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
                   const stream_options& options = {})
      : fstream(name.c_str(), mode, options) {}
  fstream(client& from, std::string_view name,
          std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
          const stream_options& options = {});
  fstream(fstream&& other);
  fstream& operator=(fstream&& other);
  /// Closes. Written bytes are then visible, or lost with the connection: call `close()` to know.
  ~fstream() override;

  void swap(fstream& other);
  filebuf* rdbuf() const noexcept { return const_cast<filebuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Opens, and clears the state, or sets failbit.
  void open(const char* name, std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
            const stream_options& options = {});
  void open(const std::string& name,
            std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  template <detail::path Path>
  void open(const Path& name, std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
            const stream_options& options = {}) {
    open(name.c_str(), mode, options);
  }
  void open(client& from, std::string_view name,
            std::ios_base::openmode mode = std::ios_base::in | std::ios_base::out,
            const stream_options& options = {});
  /// Flushes and closes. Sets failbit if nothing was open, or if some written bytes are not known
  /// to be visible.
  void close();

  /// Returns why failbit or badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }
  /// Returns the error as a text that names the file or URL.
  std::string error_message() const { return buffer_.error_message(); }

 private:
  filebuf buffer_;
};

inline void swap(ifstream& a, ifstream& b) { a.swap(b); }
inline void swap(ofstream& a, ofstream& b) { a.swap(b); }
inline void swap(fstream& a, fstream& b) { a.swap(b); }

}  // namespace ucx
