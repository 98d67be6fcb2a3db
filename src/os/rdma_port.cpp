#include "os/rdma_port.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/directory_entries.hpp"
#include "os/device_name.hpp"

namespace ucx::detail {
namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

/// The kernel writes a number and a word: "4: ACTIVE".
std::string read_state(const fs::path& port) {
  std::string number;
  std::string word;
  std::ifstream(port / "state") >> number >> word;
  return word;
}

/// Returns whether the port has no address that packets could carry. The kernel keeps a table of
/// them; entries that are not in use can not be read, or are zero.
bool lacks_gid(const fs::path& port) {
  bool found = false;
  const int failed = each_entry((port / "gids").c_str(), [&](std::string_view number) {
    found =
        found || first_word(port / "gids" / number).find_first_not_of("0:") != std::string::npos;
  });
  return failed == 0 && !found;
}

/// Returns the interfaces whose addresses the port has. The kernel has a file for each entry of the
/// table of addresses. It can not be read where the entry is not in use, or has no interface.
std::vector<std::string> interfaces_of(const fs::path& port) {
  std::vector<std::string> found;
  each_entry((port / "gid_attrs" / "ndevs").c_str(), [&](std::string_view number) {
    std::string name = first_word(port / "gid_attrs" / "ndevs" / number);
    if (!name.empty()) found.push_back(std::move(name));
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// DEVICES/DEVICE/ports/PORT of "DEVICE:PORT".
fs::path folder_of(std::string_view port, const rdma_folders& where) {
  const device_name name = parse_device_name(port);
  return fs::path(where.devices) / name.device / "ports" / name.port;
}

/// Returns why this process can not open the device; empty where it can.
std::string why_closed(std::string_view device, const rdma_folders& where) {
  std::string file;
  const int failed = each_entry(where.verbs.c_str(), [&](std::string_view verbs) {
    if (first_word(fs::path(where.verbs) / verbs / "ibdev") == device) file = verbs;
  });
  if (failed != 0 || file.empty()) return "the kernel lets no program use it (module ib_uverbs)";
  file = where.files + '/' + file;
  if (::access(file.c_str(), R_OK | W_OK) == 0) return {};
  return file + " can not be opened: " + std::generic_category().message(errno);
}

std::string find_hindrance(const fs::path& port, const rdma_port& found, std::string_view device,
                           const rdma_folders& where) {
  if (!found.is_usable()) {
    const bool waits = found.state == "INIT" || found.state == "ARMED";
    const bool managed = waits && first_word(port / "link_layer") == "InfiniBand";
    return "its port is " + found.state +
           (managed ? ", and waits for the network's subnet manager" : "");
  }
  if (lacks_gid(port)) return "its port has no GID: its interface has no address";
  return why_closed(device, where);
}

}  // namespace

std::vector<rdma_port> rdma_ports(const rdma_folders& where) {
  std::vector<rdma_port> all;
  each_entry(where.devices.c_str(), [&](std::string_view device) {
    const fs::path ports = fs::path(where.devices) / device / "ports";
    // It names the interface of soft-RoCE.
    const bool is_software = !first_word(fs::path(where.devices) / device / "parent").empty();
    each_entry(ports.c_str(), [&](std::string_view port) {
      rdma_port found{std::string(device) + ':' + std::string(port), read_state(ports / port)};
      found.hindrance = find_hindrance(ports / port, found, device, where);
      found.is_software = is_software;
      all.push_back(std::move(found));
    });
  });
  std::sort(all.begin(), all.end(),
            [](const rdma_port& a, const rdma_port& b) { return a.name < b.name; });
  return all;
}

std::vector<rdma_port> rdma_ports_with_interfaces(const rdma_folders& where) {
  std::vector<rdma_port> all = rdma_ports(where);
  for (rdma_port& each : all) each.interfaces = interfaces_of(folder_of(each.name, where));
  return all;
}

bool is_rdma_port_there(std::string_view name, const rdma_folders& where) {
  return ::access(folder_of(name, where).c_str(), F_OK) == 0;
}

}  // namespace ucx::detail
