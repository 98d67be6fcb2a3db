#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ucx/access.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The kind of object behind a published name.
enum class entry_type : std::uint8_t {
  memory = 1,  ///< Memory of the server's process.
  file = 2,    ///< A file. The server reads it when a client asks.
  /// A directory of a store. Only `client::list_directory` and `client::stat` find it.
  directory = 3,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(entry_type value) noexcept;

/// A moment as file systems keep it. It may be before 1970, and after 2262, where 64 bits of
/// nanoseconds end.
struct file_time {
  std::int64_t seconds = 0;       ///< Since 1970; negative before.
  std::uint32_t nanoseconds = 0;  ///< The rest: less than 1'000'000'000.

  friend auto operator<=>(const file_time&, const file_time&) = default;
};

/// Returns `at` as a time of the system's clock, or the nearest time that the clock can hold.
UCXIO_EXPORT std::chrono::system_clock::time_point to_system_time(const file_time& at) noexcept;

/// One published name, as a server lists it.
struct entry {
  std::string name = {};
  entry_type type = entry_type::memory;
  std::uint64_t size = 0;  ///< Bytes.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  std::uint64_t generation = 0;  ///< Differs after the content was replaced.
  /// The time of the last change of a file or directory. Empty where it is not known, as for
  /// memory.
  std::optional<file_time> modified = {};
  /// The number of the device whose memory it is, by the server's driver. -1: none, or unknown.
  int device = -1;

  friend bool operator==(const entry&, const entry&) = default;
};

}  // namespace ucx
