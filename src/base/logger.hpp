// The log of a context, line by line.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

class logger {
 public:
  /// Errors: bad_configuration (UCXIO_LOG).
  static result<std::unique_ptr<logger>> make(const log_options& options, std::string name);
  ~logger();
  logger(const logger&) = delete;
  logger& operator=(const logger&) = delete;

  /// Returns whether `level` is written: ask before a text is made.
  bool writes(log_level level) const noexcept { return level <= level_; }
  /// Writes one line; what can not be printed is escaped.
  void write(log_level level, std::string_view text) noexcept;

 private:
  logger(const log_options& options, std::string name)
      : level_(options.level.value_or(log_level::none)),
        sink_(options.sink),
        name_(std::move(name)) {}
  result<void> read_environment();

  log_level level_;
  log_sink sink_;
  std::string name_;
  int file_ = 2;
  std::mutex mutex_;
};

/// Returns `text` with everything escaped that is not printable ASCII.
std::string escaped(std::string_view text);

}  // namespace ucx::detail
