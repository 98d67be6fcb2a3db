// Files that decide whom this side trusts: they are read where others have no hand in them.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/locked_memory.hpp"

namespace ucx::detail {

enum class file_guard {
  secret,   ///< The file is of this user, and others may neither read nor write it.
  trusted,  ///< The file and its folder are of this user or of root, and no other writes them. A
            ///< folder may have the sticky bit, as /tmp has.
};

/// The bytes of a file, in memory that is wiped.
struct file_text {
  locked_memory memory;
  std::size_t size = 0;

  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(memory.bytes().data()), size};
  }
  /// REQUIRES: there is room.
  void append(std::string_view more) noexcept {
    std::memcpy(memory.bytes().data() + size, more.data(), more.size());
    size += more.size();
  }
};

/// Reads a file of 1 MiB at most, or a descriptor (/dev/fd/N). `room`: bytes that the caller may
/// append. `doing` begins the text of an error.
/// Errors: no_such_name, not_secure, not_supported (no regular file), bad_configuration (too long),
/// timed_out (of a descriptor), and the system's.
result<file_text> read_guarded(const std::filesystem::path& file, file_guard guard,
                               std::size_t room, const std::string& doing);

/// Returns what errno means for a file.
failure failure_of_file(const std::string& doing);

}  // namespace ucx::detail
