#include "base/logger.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <utility>

#include "ucx/error.hpp"

namespace ucx {

template <>
std::string_view detail::enum_name(log_level value) noexcept {
  switch (value) {
    case log_level::none:
      return "none";
    case log_level::error:
      return "error";
    case log_level::warning:
      return "warning";
    case log_level::info:
      return "info";
    case log_level::debug:
      return "debug";
    case log_level::trace:
      return "trace";
  }
  return "unknown";
}

namespace detail {
namespace {

constexpr std::array levels{log_level::none, log_level::error, log_level::warning,
                            log_level::info, log_level::debug, log_level::trace};

/// "2026-11-21T12:34:56.123456Z"
std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
                          now - std::chrono::system_clock::from_time_t(seconds))
                          .count();
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text = {};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 16> rest = {};
  std::snprintf(rest.data(), rest.size(), ".%06dZ", static_cast<int>(micros));
  return std::string(text.data(), length) + rest.data();
}

}  // namespace

result<std::unique_ptr<logger>> logger::make(const log_options& options, std::string name) {
  std::unique_ptr<logger> made(new logger(options, std::move(name)));
  if (options.level) return made;
  if (const auto read = made->read_environment(); !read) return read.why();
  return made;
}

logger::~logger() {
  if (file_ != STDERR_FILENO) ::close(file_);
}

result<void> logger::read_environment() {
  const char* const variable = std::getenv("UCXIO_LOG");
  if (variable == nullptr || *variable == '\0') return {};
  const std::string_view text(variable);
  const std::string_view wanted = text.substr(0, text.find(':'));
  const auto objection = [&](const char* why) {
    return failure{errc::bad_configuration, "UCXIO_LOG is \"" + escaped(text) + "\": " + why};
  };
  const auto known = std::find_if(levels.begin(), levels.end(),
                                  [&](log_level each) { return wanted == to_string(each); });
  if (known == levels.end()) {
    return objection("there is no such level; it may be error, warning, info, debug or trace");
  }
  level_ = *known;
  if (wanted.size() == text.size() || sink_) return {};
  const std::string path(text.substr(wanted.size() + 1));
  const int opened = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (opened < 0) return objection("the file can not be opened");
  file_ = opened;
  return {};
}

void logger::write(log_level level, std::string_view text) noexcept try {
  if (!writes(level)) return;
  const std::string shown = escaped(text);
  if (sink_) {
    const std::lock_guard guard(mutex_);
    try {
      sink_(level, shown);
    } catch (...) {  // neither is this one
    }
    return;
  }
  std::string line = timestamp();
  line.append(" ucxio ").append(to_string(level)).append(" ");
  if (!name_.empty()) line.append("[").append(escaped(name_)).append("] ");
  line.append(shown).append("\n");
  const std::lock_guard guard(mutex_);
  // One call a line, so that processes that share the file do not tear each other's lines.
  for (std::string_view rest = line; !rest.empty();) {
    const ::ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written <= 0) return;  // a log that can not be written is not worth an error
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
} catch (const std::exception&) {  // a line that there is no memory for is not worth an error
}

std::string escaped(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      made += c;
      continue;
    }
    std::array<char, 8> code = {};
    std::snprintf(code.data(), code.size(), "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    made += code.data();
  }
  return made;
}

}  // namespace detail
}  // namespace ucx
