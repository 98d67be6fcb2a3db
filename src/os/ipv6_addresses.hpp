// The addresses of IPv6 that this machine has.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

struct ipv6_address {
  socket_address address = {};  ///< With port 0.
  std::string interface = {};
};

/// Returns those of interfaces that are up, as the system lists them. Addresses of one link
/// (fe80::/10) are left out: UCX does not use them. Errors: as getifaddrs.
result<std::vector<ipv6_address>> ipv6_addresses();

}  // namespace ucx::detail
