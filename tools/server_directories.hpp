// The directories of a server's stores: its list is of files alone, and names none of them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ucx/entry.hpp"

namespace ucx::tool {

/// Returns what lies in the directory `name`, which is empty for the server itself. `guessed`: it
/// need not be there.
using directory_reader = std::function<std::vector<entry>(const std::string& name, bool guessed)>;

/// Adds the directories that `name` leads through, if it is a path.
void add_directories_of(const std::string& name, std::set<std::string>& directories);

/// Calls `read` once for each directory of a server: those that names of its list lead through,
/// which is what `guessed` has, and those that it finds in them, where no file may be.
void visit_directories(const std::set<std::string>& guessed, const directory_reader& read);

}  // namespace ucx::tool
