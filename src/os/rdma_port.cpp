#include "os/rdma_port.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/directory_entries.hpp"

namespace ucx::detail {
namespace {

namespace fs = std::filesystem;

/// The kernel writes a number and a word: "4: ACTIVE".
std::string read_state(const fs::path& port) {
  std::string number;
  std::string word;
  std::ifstream(port / "state") >> number >> word;
  return word;
}

}  // namespace

// FOLDER/DEVICE/ports/PORT
std::vector<rdma_port> rdma_ports(const std::string& folder) {
  std::vector<rdma_port> found;
  each_entry(folder.c_str(), [&](std::string_view device) {
    const fs::path ports = fs::path(folder) / device / "ports";
    each_entry(ports.c_str(), [&](std::string_view port) {
      found.push_back({std::string(device) + ':' + std::string(port), read_state(ports / port)});
    });
  });
  std::sort(found.begin(), found.end(),
            [](const rdma_port& a, const rdma_port& b) { return a.name < b.name; });
  return found;
}

}  // namespace ucx::detail
