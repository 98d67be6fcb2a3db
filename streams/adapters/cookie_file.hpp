// A FILE of the C library whose bytes go through a filebuf.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ios>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/context.hpp"
#include "ucx/fstream.hpp"

namespace ucx::detail {

/// A mode of fopen, taken apart.
struct file_mode {
  std::ios_base::openmode wanted = {};
  std::string normal;  ///< "r", "w" or "a", with "+" where it is for both
};

/// Errors: invalid_argument (no mode of C's), not_supported (a conversion, or "x" where the
/// standard library has no such thing).
file_mode parse_file_mode(const char* mode, std::error_code& ec);

/// Lives from make() to fclose(). Its functions are called by the C library, under the FILE's lock.
class cookie_file {
 public:
  /// Makes a FILE behind which nothing is open; null where there is no memory for it. All of it is
  /// had before anything is opened: a new file that is closed has its name.
  static std::FILE* make(const file_mode& mode, std::size_t buffer_size);
  cookie_file(const cookie_file&) = delete;
  cookie_file& operator=(const cookie_file&) = delete;

  /// Returns who is behind a FILE; null behind others.
  static cookie_file* behind(std::FILE* opened) noexcept;

  /// Flushes and closes all that are open, but those that another thread uses at this moment.
  static void close_all() noexcept;

  /// From here on `opened` is behind it. REQUIRES: the FILE is locked, so that close_all() leaves
  /// it alone, and nothing was behind it.
  void take(filebuf&& opened) { buffer_ = std::move(opened); }

  std::error_code failure() const noexcept { return failure_; }
  const std::string& failure_text() const noexcept { return failure_text_; }

 private:
  class open_files;

  cookie_file() = default;
  ~cookie_file() = default;

  static ::ssize_t read(void* self, char* into, std::size_t count) noexcept;
  static ::ssize_t write(void* self, const char* from, std::size_t count) noexcept;
  static int seek(void* self, std::int64_t* position, int whence) noexcept;
  static int close(void* self) noexcept;

  template <class Result, class Call>
  Result attempt(Result failed, Call&& call) noexcept;
  void fail(std::error_code why, std::string text = {}) noexcept;
  bool may_go_on() noexcept;

  const process_stamp made_;
  filebuf buffer_;
  std::FILE* file_ = nullptr;
  std::unique_ptr<char[]> area_;  // the C library's buffer, where its own would be too short
  std::error_code failure_;
  std::string failure_text_;
};

}  // namespace ucx::detail
