// The directories of a server's stores: its list is of files alone, and names none of them.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ucx/entry.hpp"

namespace ucx::tool {

/// Tells `found` what lies in the directory `name`, which is empty for the server itself, until
/// that returns false: there is no room for more. `guessed`: it need not be there.
using found_entry = std::function<bool(const entry&)>;
using directory_reader =
    std::function<void(const std::string& name, bool guessed, const found_entry& found)>;

/// Adds the directories that `name` leads through, if it is a path. Returns how many bytes those
/// that are new have in their names.
std::size_t add_directories_of(const std::string& name, std::set<std::string>& directories);

/// A server may name as many as it likes: of more nothing is asked, or kept.
constexpr std::size_t most_directories = std::size_t{1} << 16U;

/// Calls `read` once for each directory of a server. These are those in `guessed`, which names of
/// the server's list lead through, and those that it finds in them, which may have no file. Returns
/// whether those were all: directories beyond `most_directories` are left out.
bool visit_directories(const std::set<std::string>& guessed, const directory_reader& read);

}  // namespace ucx::tool
