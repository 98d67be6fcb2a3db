// The ports of this machine's RDMA devices, as the system lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

struct rdma_port {
  std::string name;            ///< As UCX names it: "mlx5_0:1".
  std::string state;           ///< "ACTIVE" or "DOWN", as the system says it; empty: unknown.
  std::string hindrance = {};  ///< Why UCX can not use it, as far as the system shows that.
  /// Those that its addresses (GIDs) belong to, as "eth0" and "eth0.100" of RoCE. None where the
  /// system names none, as of InfiniBand, or was not asked.
  std::vector<std::string> interfaces = {};
  bool is_software = false;  ///< Soft-RoCE: the kernel plays the adapter.

  bool is_usable() const noexcept { return state.empty() || state == "ACTIVE"; }
};

/// The folders in which the system lists RDMA devices, and in which programs open them.
struct rdma_folders {
  std::string devices = "/sys/class/infiniband";
  std::string verbs = "/sys/class/infiniband_verbs";
  std::string files = "/dev/infiniband";
};

/// Returns them in the order of their names. UCX may have no transport for one without a hindrance,
/// too: UCX may have been built without it.
std::vector<rdma_port> rdma_ports(const rdma_folders& where = {});

/// Returns them with the interfaces of their addresses, of which there may be hundreds.
std::vector<rdma_port> rdma_ports_with_interfaces(const rdma_folders& where = {});

/// Returns whether the system lists the port. Asks no device, so it is quick whatever their state.
bool is_rdma_port_there(std::string_view name, const rdma_folders& where = {});

}  // namespace ucx::detail
