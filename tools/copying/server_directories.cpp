#include "copying/server_directories.hpp"

namespace ucx::tool {

std::size_t add_directories_of(const std::string& name, std::set<std::string>& directories) {
  std::size_t added = 0;
  for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    if (directories.insert(name.substr(0, slash)).second) added += slash;
  }
  return added;
}

bool visit_directories(const std::set<std::string>& guessed, const directory_reader& read) {
  std::set<std::string> seen(guessed);
  seen.insert("");  // of a store without a prefix
  std::vector<const std::string*> left;
  for (const std::string& each : seen) left.push_back(&each);
  bool is_all = true;
  const found_entry take = [&](const entry& found) {
    if (found.type != entry_type::directory || seen.contains(found.name)) return true;
    is_all = is_all && seen.size() < most_directories;
    if (is_all) left.push_back(&*seen.insert(found.name).first);
    return is_all;
  };
  while (!left.empty()) {
    const std::string& name = *left.back();
    left.pop_back();
    // A name that was published by itself may have slashes, and no directory.
    read(name, name.empty() || guessed.contains(name), take);
  }
  return is_all;
}

}  // namespace ucx::tool
