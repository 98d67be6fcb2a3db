// An address of this machine that other machines could reach.
#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <system_error>

#include "ucx/socket_address.hpp"

namespace ucx::test {

/// Returns an address of this machine that is not loopback's; an empty one where there is none.
inline socket_address outer_address() {
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> all(list, &::freeifaddrs);
  for (const ::ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::error_code ec;
    return socket_address::from_native(each->ifa_addr, sizeof(::sockaddr_in), ec);
  }
  return {};
}

}  // namespace ucx::test
