// Texts about a connection, for the log and for errors.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <vector>

#include "ucp/rdma.hpp"
#include "ucx/access.hpp"
#include "wire/introduction.hpp"

namespace ucx::detail {

class worker_core;

/// Returns what the log says of an established connection over these lanes. UCX takes TCP in
/// silence where RDMA hardware is on one side only.
std::string words_of_established(const introduction& theirs, const std::vector<std::string>& lanes,
                                 const std::vector<std::string>& resources,
                                 transfer_method long_messages);

/// Returns what the peer's introduction tells of RDMA hardware.
inline rdma_of_peer rdma_told_by(const introduction& theirs) noexcept {
  return theirs.fetches ? rdma_of_peer::present : rdma_of_peer::unknown;
}

/// Returns what is known of a connection at `worker` that UCX reported as lost. `hardware` names
/// its lanes of RDMA. `stood` says that it was established, `dials` that UCX had not connected the
/// two.
std::string words_of_loss(const worker_core& worker, ucs_status_t status,
                          const std::string& hardware, bool stood, bool dials);

}  // namespace ucx::detail
