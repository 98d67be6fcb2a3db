#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The amount of logging. A level has its own lines, and those of the levels before it in this
/// list.
enum class log_level {
  none,     ///< Nothing.
  error,    ///< Resources that are used up: the user has to act.
  warning,  ///< Connections that were lost or refused; devices and transports that failed.
  info,     ///< Contexts, workers, listeners and connections, as they come and go.
  debug,    ///< Each operation as it ends: its kind, its object, its bytes, its outcome.
  trace,    ///< Each message of the library's own protocol.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(log_level value) noexcept;

/// Takes one line, without a line break or other control characters. It is called from any thread,
/// one line at a time, and under locks of the library: it must not call the library. An exception
/// of it is dropped, with its line.
using log_sink = std::function<void(log_level level, std::string_view line)>;

/// The place of a context's log, and its level. Without a level the environment decides.
/// `UCXIO_LOG=debug` writes to the standard error stream, and `UCXIO_LOG=debug:/path` appends to a
/// file. Without either the library logs nothing.
struct log_options {
  std::optional<log_level> level = {};
  /// Takes the lines. Empty: the standard error stream, or the environment's file.
  log_sink sink = {};
};

}  // namespace ucx
