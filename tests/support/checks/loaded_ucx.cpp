// Prints the versions that this program runs with, and where UCX was loaded from. Fails if there
// are two copies of UCX in the process, or if the version does not begin with the argument.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "ucx/version.hpp"

namespace {

// The folders of every mapped library of UCX's.
std::set<std::string> ucx_folders() {
  std::set<std::string> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::filesystem::path file = line.substr(slash);
    for (const char* const library : {"libucp.so", "libucs.so", "libuct.so", "libucm.so"}) {
      if (file.filename().string().starts_with(library)) folders.insert(file.parent_path());
    }
  }
  return folders;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = to_string(ucx::ucx_version());
  std::cout << "ucxio " << to_string(ucx::version()) << ", protocol " << ucx::protocol_version()
            << ", UCX " << transport;
  const auto folders = ucx_folders();
  for (const auto& folder : folders) std::cout << " from " << folder;
  std::cout << '\n';
  if (folders.size() != 1) {
    std::cerr << "expected the libraries of one UCX, found " << folders.size() << " folders\n";
    return 1;
  }
  if (argc > 1 && !transport.starts_with(argv[1])) {
    std::cerr << "expected UCX " << argv[1] << '\n';
    return 1;
  }
  return 0;
}
