#include "detail/rdma_port.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

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
  std::error_code ec;
  for (fs::directory_iterator device(folder, ec), end; !ec && device != end; device.increment(ec)) {
    const std::string name = device->path().filename().string() + ':';
    std::error_code no_ports;
    fs::directory_iterator port(device->path() / "ports", no_ports);
    for (; !no_ports && port != end; port.increment(no_ports)) {
      found.push_back({name + port->path().filename().string(), read_state(port->path())});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const rdma_port& a, const rdma_port& b) { return a.name < b.name; });
  return found;
}

}  // namespace ucx::detail
