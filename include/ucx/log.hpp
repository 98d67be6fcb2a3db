#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// How much is logged: a level, and everything above it in this list.
enum class log_level {
  none,     ///< Nothing.
  error,    ///< What a user of the library has to repair: resources that are used up.
  warning,  ///< Connections that were lost or refused; devices and transports that came to nothing.
  info,     ///< Contexts, workers, listeners and connections, as they come and go.
  debug,    ///< Each operation as it ends: what, where, how many bytes, how.
  trace,    ///< Each message of the library's own protocol.
};

/// Returns the level's name.
UCXIO_EXPORT const char* to_string(log_level level) noexcept;

/// Takes one line, without a line break or other control characters. It is called from any thread,
/// one line at a time, and under locks of the library's: it must not call the library. What it
/// throws is dropped, with its line.
using log_sink = std::function<void(log_level level, std::string_view line)>;

/// Where a context logs, and how much. Without a level the environment decides:
/// `UCXIO_LOG=debug` writes to the standard error stream, `UCXIO_LOG=debug:/path` appends to a
/// file. Without either the library says nothing, ever.
struct log_options {
  std::optional<log_level> level = {};
  /// Takes the lines; empty: the standard error stream, or the environment's file.
  log_sink sink = {};
};

}  // namespace ucx
