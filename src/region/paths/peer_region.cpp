#include "region/paths/peer_region.hpp"

#include "connection/endpoint_core.hpp"

namespace ucx::detail {

std::string peer_region::description() const {
  return "region " + std::to_string(descriptor_.region) + " (" + std::to_string(descriptor_.size) +
         " bytes) at " + endpoint_.peer_name();
}

}  // namespace ucx::detail
