#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "ucx/access.hpp"
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

/// One published name, as a server lists it.
struct entry {
  std::string name = {};
  entry_type type = entry_type::memory;
  std::uint64_t size = 0;  ///< Bytes.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  std::uint64_t generation = 0;  ///< Tells a replaced content from its predecessor.
  /// When a file or directory was changed last; of memory the beginning of 1970.
  std::chrono::system_clock::time_point modified = {};
  /// The number that its server's driver gives the device whose memory it is; -1: none, or unknown.
  int device = -1;

  friend bool operator==(const entry&, const entry&) = default;
};

}  // namespace ucx
