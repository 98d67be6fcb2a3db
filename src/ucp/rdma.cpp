#include "ucp/rdma.hpp"

#include <algorithm>

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

namespace {

/// Returns the first device of these "transport/device" pairs that is gone, and what comes of that.
/// Empty where the system lists all of them.
std::string words_of_gone_device(const ucp_api& api, std::string_view lanes) {
  while (!lanes.empty()) {
    const std::string_view device = device_of(take_word(lanes));
    if (api.is_rdma_port_there(device)) continue;
    return std::string(device) + " is there no more, and a new context does without it";
  }
  return {};
}

/// Returns what UCX may have lacked.
std::string words_of_lack(const ucp_api& api, const std::string& hardware) {
  std::string text = "; the hardware of " + hardware + " may have ";
  if (!api.may_lock(memory_locked_by_worker)) {
    text += "too little memory to lock (" + words_of_lack_to_lock() + "), or ";
  }
  return text +
         "no queue pair left (`rdma resource` counts them: close connections, or leave the device "
         "out)";
}

}  // namespace

std::string rdma_advice(const ucp_api& api, ucs_status_t status,
                        const std::vector<std::string>& resources) {
  const std::string hardware = rdma_of(resources);
  if (hardware.empty()) return {};
  const bool lacks = status == UCS_ERR_IO_ERROR || status == UCS_ERR_NO_MEMORY ||
                     status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_NO_DEVICE;
  if (!lacks && status != UCS_ERR_UNREACHABLE) return {};
  if (const std::string gone = words_of_gone_device(api, hardware); !gone.empty()) {
    return "; " + gone;
  }
  if (lacks) return words_of_lack(api, hardware);
  const bool has_tcp = std::any_of(resources.begin(), resources.end(), [](const std::string& each) {
    return transport_of(each) == "tcp";
  });
  return "; the peer may lack such hardware as that of " + hardware +
         ", or have it on another network, in another partition (UCX_IB_PKEY) or with another "
         "version of RoCE (UCX_IB_GID_INDEX)" +
         (has_tcp ? "" : ": allow tcp, or set these on both sides");
}

std::string words_of_lost_rdma(const ucp_api& api, std::string_view lanes, ucs_status_t status) {
  if (lanes.empty()) return {};
  const std::string text = "; over " + std::string(lanes);
  if (const std::string gone = words_of_gone_device(api, lanes); !gone.empty()) {
    return text + ": " + gone;
  }
  switch (status) {
    case UCS_ERR_ENDPOINT_TIMEOUT:
      return text +
             ": the peer's port or the way to it may be down, or pass shorter packets than this "
             "port sends (MTU, UCX_RC_PATH_MTU)";
    case UCS_ERR_IO_ERROR:  // of a port that went down, too
      return text +
             ": this port or the way to the peer may be down, or the peer has taken back memory "
             "that was in use";
    case UCS_ERR_CONNECTION_RESET:
      return text + ": the peer has ended, or has taken back memory that was in use";
    default:
      return text;
  }
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
