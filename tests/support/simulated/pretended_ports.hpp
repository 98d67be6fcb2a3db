// RDMA devices that the system seems to list, in folders of a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "os/rdma_port.hpp"
#include "support/files/temporary_directory.hpp"

namespace ucx::test {

inline void list_port(const std::filesystem::path& folder, const std::string& device,
                      const std::string& port, const std::string& state) {
  const std::filesystem::path where = folder / device / "ports" / port;
  std::filesystem::create_directories(where);
  if (!state.empty()) std::ofstream(where / "state") << state << '\n';
}

/// A pretended system: each device has a port 1 with one GID, and a file that can be opened.
class pretended_ports {
 public:
  pretended_ports()
      : where{(folder / "infiniband").string(), (folder / "infiniband_verbs").string(),
              (folder / "dev").string()} {
    std::filesystem::create_directories(where.files);
  }

  void add(const std::string& device, const std::string& layer = "InfiniBand") {
    const std::string number = "uverbs" + std::to_string(devices++);
    add_port(device, "1", "4: ACTIVE", layer);
    std::filesystem::create_directories(folder / "infiniband_verbs" / number);
    std::ofstream(folder / "infiniband_verbs" / number / "ibdev") << device << '\n';
    std::ofstream(folder / "dev" / number) << "";
  }
  void add_port(const std::string& device, const std::string& port, const std::string& state,
                const std::string& layer) {
    list_port(where.devices, device, port, state);
    std::ofstream(port_of(device, port) / "link_layer") << layer << '\n';
    std::filesystem::create_directories(port_of(device, port) / "gids");
    set_gid(device, port, 0, "fe80:0000:0000:0000:0202:c9ff:fe00:0001");
  }
  void set_gid(const std::string& device, const std::string& port, int number,
               const std::string& gid) {
    std::ofstream(port_of(device, port) / "gids" / std::to_string(number)) << gid << '\n';
  }
  /// Says whose the address is; of one that is not in use, the kernel's file can not be read.
  void set_interface(const std::string& device, int number, const std::string& interface,
                     const std::string& port = "1") {
    const std::filesystem::path all = port_of(device, port) / "gid_attrs" / "ndevs";
    std::filesystem::create_directories(all);
    if (interface.empty()) {
      std::filesystem::create_directories(all / std::to_string(number));
    } else {
      std::ofstream(all / std::to_string(number)) << interface << '\n';
    }
  }
  std::vector<std::string> interfaces(const std::string& name) const {
    for (const detail::rdma_port& each : detail::rdma_ports_with_interfaces(where)) {
      if (each.name == name) return each.interfaces;
    }
    return {"it is not listed"};
  }
  std::filesystem::path port_of(const std::string& device, const std::string& port) const {
    return std::filesystem::path(where.devices) / device / "ports" / port;
  }
  std::string hindrance(const std::string& name) const {
    for (const detail::rdma_port& each : detail::rdma_ports(where)) {
      if (each.name == name) return each.hindrance;
    }
    return "it is not listed";
  }

  const test::temporary_directory folder;
  const detail::rdma_folders where;
  int devices = 0;
};

}  // namespace ucx::test
