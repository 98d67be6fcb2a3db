#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ucx/access.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// What stands behind a published name.
enum class entry_type : std::uint8_t {
  memory = 1,  ///< Memory of the server's process.
  file = 2,    ///< A file, read when it is asked for.
  /// A directory of a store. Only what asks for one finds it: `client::list_directory` and `stat`.
  directory = 3,
};

/// Returns "memory", "file" or "directory".
UCXIO_EXPORT std::string_view to_string(entry_type type) noexcept;

/// A moment as file systems keep it: also before 1970, and beyond 2262, where nanoseconds in 64
/// bits end.
struct file_time {
  std::int64_t seconds = 0;       ///< Since 1970; negative before.
  std::uint32_t nanoseconds = 0;  ///< Behind them: less than 1'000'000'000.

  friend auto operator<=>(const file_time&, const file_time&) = default;
};

/// Returns the same as the system's clock says it; where that can not, the nearest that it can.
UCXIO_EXPORT std::chrono::system_clock::time_point to_system_time(const file_time& at) noexcept;

/// One published name, as a server lists it.
struct entry {
  std::string name = {};
  entry_type type = entry_type::memory;
  std::uint64_t size = 0;  ///< Bytes.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  std::uint64_t generation = 0;  ///< Tells a replaced content from its predecessor.
  /// When a file or directory was changed last; nothing where nobody knows, as of memory.
  std::optional<file_time> modified = {};
  /// The number that its server's driver gives the device whose memory it is; -1: none, or unknown.
  int device = -1;

  friend bool operator==(const entry&, const entry&) = default;
};

}  // namespace ucx
