#include "ucp/rdma.hpp"

#include "os/device_name.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::detail {

std::string rdma_of(const std::vector<std::string>& lanes) {
  std::string found;
  for (const std::string& each : lanes) {
    if (is_rdma(each)) found.append(found.empty() ? "" : ",").append(each);
  }
  return found;
}

std::string rdma_advice(ucs_status_t status, const std::vector<std::string>& resources) {
  const std::string hardware = rdma_of(resources);
  if (hardware.empty()) return {};
  switch (status) {
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
      return "; the hardware of " + hardware +
             " may have no queue pair left (`rdma resource` counts them: close connections, or "
             "leave the device out), or no memory: " +
             words_of_lock_limit();
    case UCS_ERR_UNREACHABLE:
      return "; the peer may lack such hardware as that of " + hardware +
             ", or have it on another network or with another version of RoCE: allow tcp, or set "
             "UCX_IB_GID_INDEX on both sides";
    default:
      return {};
  }
}

std::string words_of_lost_rdma(const ucp_api& api, std::string_view lanes) {
  if (lanes.empty()) return {};
  std::string text = "; over " + std::string(lanes);
  while (!lanes.empty()) {
    const std::string_view device = device_of(take_word(lanes));
    if (api.is_rdma_port_there(device)) continue;
    return text + ": " + std::string(device) +
           " is there no more, and a new context does without it";
  }
  return text;
}

std::string why_no_rma(const std::vector<std::string>& lanes,
                       const std::vector<std::string>& resources, rdma_of_peer theirs) {
  const auto lane = std::find_if(lanes.begin(), lanes.end(), is_rdma);
  if (lane != lanes.end()) return "the hardware of " + *lane + " carries messages only";
  const auto own = std::find_if(resources.begin(), resources.end(), is_rdma);
  if (own == resources.end()) return "this side has no RDMA hardware that it may use";
  const std::string unused = "RDMA hardware of this side is not used (" + *own + "): ";
  constexpr const char* elsewhere = "on another network or with another version of RoCE";
  if (theirs == rdma_of_peer::present) {
    return unused + "the peer has some, too, but none that UCX reaches, as " + elsewhere +
           " (UCX_IB_GID_INDEX)";
  }
  return unused + "the peer has none, or none that UCX reaches, as " + elsewhere;
}

}  // namespace ucx::detail
