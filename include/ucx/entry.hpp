#pragma once

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
};

/// Returns "memory" or "file".
UCXIO_EXPORT std::string_view to_string(entry_type type) noexcept;

/// One published name, as a server lists it.
struct entry {
  std::string name = {};
  entry_type type = entry_type::memory;
  std::uint64_t size = 0;  ///< Bytes; for a file, its size when it was published.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  std::uint64_t generation = 0;  ///< Tells a replaced content from its predecessor.

  friend bool operator==(const entry&, const entry&) = default;
};

}  // namespace ucx
