#include "region/paths/peer_region.hpp"

#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Does not tell the number, which is a key to the region.
std::string peer_region::description() const {
  return "region " + std::to_string(descriptor_.generation) + " (" +
         std::to_string(descriptor_.size) + " bytes) at " + endpoint_.peer_name();
}

bool peer_region::has_answers() const noexcept {
  return endpoint_.speaks() && !descriptor_.foreign;
}

failure peer_region::why_no_answers() const {
  if (!endpoint_.worker().context().has(feature::am)) {
    return failure{errc::feature_disabled, "the context was made without feature::am"};
  }
  return failure{errc::not_supported,
                 descriptor_.foreign ? "the region is foreign, and its owner answers no messages"
                                     : "the peer is UCX alone, and answers no messages"};
}

}  // namespace ucx::detail
