// A file of this machine as an end of a copy.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "copying/copy_ends.hpp"

namespace ucx::tool {

/// Returns what of the system's words a copy keeps.
source_facts facts_of(const struct ::stat& about);

/// Gives a directory the same. Errors: failure.
void preserve(const std::filesystem::path& directory, const source_facts& like);

/// Opens a regular file, or whatever else can be read by offset.
std::unique_ptr<copy_source> open_local_source(const std::filesystem::path& path);

/// Writes beside `path`, under `partial_name`, and renames; what is no regular file, such as a
/// device or a pipe, is written where it is. `size` is what is going to be written. Errors: busy
/// (another copy writes it); no_space, from `begin` on.
std::unique_ptr<copy_target> open_local_target(const std::filesystem::path& path,
                                               std::uint64_t size, const copy_terms& terms);

}  // namespace ucx::tool
