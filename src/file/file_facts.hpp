// The system's facts of a file or directory.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "ucx/entry.hpp"

namespace ucx::detail {

struct file_facts {
  bool is_directory = false;
  std::uint64_t size = 0;
  file_time modified = {};
  std::uint64_t links = 0;  ///< How many names it has.
  /// Tells a content from what was there before, under the same name: another file, or another size
  /// or time of change.
  std::uint64_t generation = 0;
};

file_facts facts_from(const struct ::stat& about) noexcept;
/// Tells size, generation and time of change of what `described` is about.
void tell(entry& described, const file_facts& facts) noexcept;

/// Returns whether nothing happened to the file since `before` but that it lost a name, because it
/// was removed or replaced. Then the content is the same, although its generation is another.
bool has_only_lost_names(const file_facts& now, const file_facts& before) noexcept;

/// Returns what the kernel knows of an open file, without waiting. Over a network that may be a few
/// seconds old. Nothing where the kernel knows nothing.
std::optional<file_facts> known_facts(int descriptor) noexcept;
/// Returns what an open file is by now, also where another machine writes to it. Takes as long as
/// the file system does. Nothing where that can not tell.
std::optional<file_facts> fresh_facts(int descriptor) noexcept;

/// Returns a number that stays with the file of an open descriptor, whatever is written to it; 0
/// where the system does not tell. Another file under the same name has another number. So has a
/// later file in the same place of the disk, if the file system tells when it was made. Asks what
/// the kernel knows, and waits for no disk.
std::uint64_t file_identity(int descriptor) noexcept;

}  // namespace ucx::detail
