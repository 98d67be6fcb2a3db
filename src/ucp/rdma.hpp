// Which of UCX's transports are RDMA hardware, and which of these read and write a peer's memory.
#pragma once

#include <ucs/type/status.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

class ucp_api;

/// Returns whether `lane` ("rc_mlx5/mlx5_0:1") is of RDMA hardware, which sends bytes in place.
inline bool is_rdma(std::string_view lane) noexcept {
  static constexpr std::array<std::string_view, 5> hardware{"rc_", "dc_", "ud_", "gga", "srd/"};
  return std::any_of(hardware.begin(), hardware.end(),
                     [&](std::string_view prefix) { return lane.starts_with(prefix); });
}

/// Returns whether the hardware of `lane` reads and writes a peer's memory without the peer's
/// processor. Over `ud`, which carries messages only, UCX emulates GET and PUT by the owner's
/// progress. The abilities of `srd` depend on the device, and UCX does not tell them.
inline bool has_rma(std::string_view lane) noexcept {
  return is_rdma(lane) && !lane.starts_with("ud_") && !lane.starts_with("srd/");
}

inline bool any_is_rdma(const std::vector<std::string>& lanes) noexcept {
  return std::any_of(lanes.begin(), lanes.end(), [](const std::string& l) { return is_rdma(l); });
}

inline bool any_has_rma(const std::vector<std::string>& lanes) noexcept {
  return std::any_of(lanes.begin(), lanes.end(), [](const std::string& l) { return has_rma(l); });
}

/// Returns the "transport/device" pairs that are hardware, with commas.
std::string rdma_of(const std::vector<std::string>& lanes);

/// Returns what may be behind `status` where UCX made no connection, or no worker, on a context
/// with these resources, and what to do. Begins with "; ". Empty where RDMA hardware has no part in
/// it.
std::string rdma_advice(const ucp_api& api, ucs_status_t status,
                        const std::vector<std::string>& resources);

/// Returns what there is to say of a connection that was lost with `status` over the lanes of
/// `rdma_of`, which it names. It tells which hardware is gone, or else what the hardware may have
/// met. Begins with "; ", where there is any.
std::string words_of_lost_rdma(const ucp_api& api, std::string_view lanes, ucs_status_t status);

/// A peer may tell that it has hardware that reads and writes memory. One of an earlier version, or
/// without RMA, tells nothing.
enum class rdma_of_peer { unknown, present };

/// Returns why no hardware reads and writes memory over `lanes` of a connection, whose context has
/// these resources. REQUIRES: none of the lanes has RMA.
std::string why_no_rma(const std::vector<std::string>& lanes,
                       const std::vector<std::string>& resources, rdma_of_peer theirs);

}  // namespace ucx::detail
