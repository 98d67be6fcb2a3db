#include "server_directories.hpp"

#include <utility>

namespace ucx::tool {

void add_directories_of(const std::string& name, std::set<std::string>& directories) {
  for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    directories.insert(name.substr(0, slash));
  }
}

void visit_directories(const std::set<std::string>& guessed, const directory_reader& read) {
  std::set<std::string> seen(guessed);
  seen.insert("");  // of a store without a prefix
  std::vector<std::string> left(seen.begin(), seen.end());
  while (!left.empty()) {
    const std::string name = std::move(left.back());
    left.pop_back();
    // What was published by itself may have slashes, and no directory.
    for (const entry& each : read(name, name.empty() || guessed.contains(name))) {
      const bool is_new = each.type == entry_type::directory && seen.insert(each.name).second;
      if (is_new) left.push_back(each.name);
    }
  }
}

}  // namespace ucx::tool
