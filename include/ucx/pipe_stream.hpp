#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>

#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/pipe_streambuf.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx {

// Pipes between processes: `docs/reference/pipes.md` is the contract. Constructors return when the
// other side is there, as opening a FIFO does. A stream that can not open sets failbit, and
// `error()` tells why. The constructors with a worker and a connection are for ends that found each
// other in another way.

/// Reads the bytes that one or several processes write.
class UCXIO_EXPORT ipipestream : public std::istream {
 public:
  ipipestream();
  explicit ipipestream(const char* where, const pipe_options& options = {});
  explicit ipipestream(const std::string& where, const pipe_options& options = {})
      : ipipestream(where.c_str(), options) {}
  explicit ipipestream(const url& where, const pipe_options& options = {});
  ipipestream(worker& driven, endpoint connection, const pipe_options& options = {});
  ipipestream(ipipestream&& other) noexcept;
  ipipestream& operator=(ipipestream&& other) noexcept;
  ~ipipestream() override;

  void swap(ipipestream& other) noexcept;
  pipe_streambuf* rdbuf() const noexcept { return const_cast<pipe_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Stops reading: a writer that has more to say fails with `broken_pipe`.
  void close();
  /// Returns how many bytes were read.
  std::uint64_t received() const noexcept { return buffer_.received(); }
  /// Returns why failbit or badbit is set, and that as a text.
  std::error_code error() const noexcept { return not_open_ ? not_open_->code() : buffer_.error(); }
  std::string error_message() const {
    return not_open_ ? not_open_->what() : buffer_.error_message();
  }

 private:
  pipe_streambuf buffer_;
  std::optional<ucx::error> not_open_;  // why
};

/// Writes bytes to one process, or to each of several.
class UCXIO_EXPORT opipestream : public std::ostream {
 public:
  opipestream();
  explicit opipestream(const char* where, const pipe_options& options = {});
  explicit opipestream(const std::string& where, const pipe_options& options = {})
      : opipestream(where.c_str(), options) {}
  explicit opipestream(const url& where, const pipe_options& options = {});
  opipestream(worker& driven, endpoint connection, const pipe_options& options = {});
  opipestream(opipestream&& other) noexcept;
  opipestream& operator=(opipestream&& other) noexcept;
  /// Closes. If an exception destroys the stream, gives up. Call `close()` to learn the outcome.
  ~opipestream() override;

  void swap(opipestream& other) noexcept;
  pipe_streambuf* rdbuf() const noexcept { return const_cast<pipe_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Ends writing. Returns when the readers' processes have all bytes, or sets failbit.
  void close();
  /// Returns how many bytes every reader's program has taken, as far as the readers have told.
  std::uint64_t consumed() { return buffer_.consumed(); }
  /// Returns why failbit or badbit is set, and that as a text.
  std::error_code error() const noexcept { return not_open_ ? not_open_->code() : buffer_.error(); }
  std::string error_message() const {
    return not_open_ ? not_open_->what() : buffer_.error_message();
  }

 private:
  pipe_streambuf buffer_;
  std::optional<ucx::error> not_open_;  // why
};

/// Reads the bytes that another process writes, and writes bytes that it reads.
class UCXIO_EXPORT pipestream : public std::iostream {
 public:
  pipestream();
  explicit pipestream(const char* where, const pipe_options& options = {});
  explicit pipestream(const std::string& where, const pipe_options& options = {})
      : pipestream(where.c_str(), options) {}
  explicit pipestream(const url& where, const pipe_options& options = {});
  pipestream(worker& driven, endpoint connection, const pipe_options& options = {});
  pipestream(pipestream&& other) noexcept;
  pipestream& operator=(pipestream&& other) noexcept;
  /// Closes. If an exception destroys the stream, gives up. Call `close()` to learn the outcome.
  ~pipestream() override;

  void swap(pipestream& other) noexcept;
  pipe_streambuf* rdbuf() const noexcept { return const_cast<pipe_streambuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Ends writing, like `opipestream::close()`. Reading goes on.
  void close_output();
  /// Ends reading and writing. Returns when the readers' processes have all bytes, or sets failbit.
  void close();
  /// Returns how many bytes were read.
  std::uint64_t received() const noexcept { return buffer_.received(); }
  /// Returns how many bytes every reader's program has taken, as far as the readers have told.
  std::uint64_t consumed() { return buffer_.consumed(); }
  /// Returns why failbit or badbit is set, and that as a text.
  std::error_code error() const noexcept { return not_open_ ? not_open_->code() : buffer_.error(); }
  std::string error_message() const {
    return not_open_ ? not_open_->what() : buffer_.error_message();
  }

 private:
  pipe_streambuf buffer_;
  std::optional<ucx::error> not_open_;  // why
};

inline void swap(ipipestream& a, ipipestream& b) noexcept { a.swap(b); }
inline void swap(opipestream& a, opipestream& b) noexcept { a.swap(b); }
inline void swap(pipestream& a, pipestream& b) noexcept { a.swap(b); }

}  // namespace ucx
