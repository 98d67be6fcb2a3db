#include "ucp/rdma.hpp"

namespace ucx::detail {

std::string why_no_rma(const std::vector<std::string>& lanes,
                       const std::vector<std::string>& resources) {
  const auto lane = std::find_if(lanes.begin(), lanes.end(), is_rdma);
  if (lane != lanes.end()) return "the hardware of " + *lane + " carries messages only";
  const auto own = std::find_if(resources.begin(), resources.end(), is_rdma);
  if (own == resources.end()) return "this side has no RDMA hardware that it may use";
  return "RDMA hardware of this side is not used (" + *own +
         "): the peer has none, or none that UCX reaches";
}

}  // namespace ucx::detail
