// What a context writes down, line by line.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/log.hpp"

namespace ucx::detail {

class logger {
 public:
  /// On failure (`bad_configuration`) `what` says what is wrong with UCXIO_LOG.
  logger(const log_options& options, std::string name, std::string& what, std::error_code& ec);
  ~logger();
  logger(const logger&) = delete;
  logger& operator=(const logger&) = delete;

  /// Returns whether `level` is written: ask before a text is made.
  bool writes(log_level level) const noexcept { return level <= level_; }
  /// Writes one line; what can not be printed is escaped.
  void write(log_level level, std::string_view text) noexcept;

 private:
  void read_environment(std::string& what, std::error_code& ec);

  log_level level_ = log_level::none;
  log_sink sink_;
  std::string name_;
  int file_ = 2;
  std::mutex mutex_;
};

/// Returns `text` with everything escaped that is not printable ASCII.
std::string escaped(std::string_view text);

}  // namespace ucx::detail
