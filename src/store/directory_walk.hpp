// The names in a directory, or below it, in order and in bounded memory. Where a store has its
// unfinished files is left out everywhere.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "store/known_names.hpp"

namespace ucx::detail {

/// How a directory is opened whose names are to be read.
inline constexpr int to_read_names = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

/// Returns whether a store has what is of this type.
inline bool is_served(::mode_t mode) noexcept { return S_ISREG(mode) || S_ISDIR(mode); }

/// Is given what was found, by its path below the top, and says whether to go on.
using found_entry = std::function<bool(const std::string& path, const struct ::stat& about)>;

/// Visits everything directly in an open directory whose name is behind `after`, in order of bytes.
/// A directory of any size is kept in memory by some ten thousand names at a time; what `known` has
/// is not read. Returns why the rest could not be had, where the system does not say what there is.
std::error_code walk_directory(int directory, std::string_view after, known_names& known,
                               const found_entry& visit);

/// Visits everything below an open directory that is no directory itself and whose path is behind
/// `after`, in order of the bytes of paths. Symbolic links are not followed, so there are no loops.
/// Files that are deeper than a path may be long are left out, and so are directories that may not
/// be read. Returns the same.
std::error_code walk_tree(int top, std::string_view after, known_names& known,
                          const found_entry& visit);

/// Calls `visit` for each name in an open directory, in any order. `type` is as in `st_mode`, or 0
/// where it can not be told. Returns the same.
std::error_code each_type(int directory,
                          const std::function<void(const std::string& name, ::mode_t type)>& visit);

/// Returns all names in an open directory.
result<std::vector<std::string>> names_in(int directory);

}  // namespace ucx::detail
