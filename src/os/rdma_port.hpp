// The ports of this machine's RDMA devices, as the system lists them.
#pragma once

#include <string>
#include <vector>

namespace ucx::detail {

struct rdma_port {
  std::string name;   ///< As UCX names it: "mlx5_0:1".
  std::string state;  ///< As the system says it, "ACTIVE" or "DOWN"; empty: it says nothing.

  bool is_usable() const noexcept { return state.empty() || state == "ACTIVE"; }
};

/// Returns them in the order of their names. Of one that is there UCX may have no transport: its
/// port is down, UCX was built without it, or `/dev/infiniband` can not be opened.
std::vector<rdma_port> rdma_ports(const std::string& folder = "/sys/class/infiniband");

}  // namespace ucx::detail
