#include "os/ipv6_addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "ucx/error.hpp"

namespace ucx::detail {

result<std::vector<ipv6_address>> ipv6_addresses() {
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return failure{std::error_code(errno, std::generic_category()), "listing the interfaces"};
  }
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> all(list, &::freeifaddrs);
  std::vector<ipv6_address> found;
  for (const ::ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET6) continue;
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    const auto& shown = *reinterpret_cast<const ::sockaddr_in6*>(each->ifa_addr);
    if (IN6_IS_ADDR_LINKLOCAL(&shown.sin6_addr)) continue;
    std::error_code ec;
    const auto address = socket_address::from_native(each->ifa_addr, sizeof shown, ec);
    if (!ec) found.push_back({address.with_port(0), each->ifa_name});
  }
  return found;
}

}  // namespace ucx::detail
