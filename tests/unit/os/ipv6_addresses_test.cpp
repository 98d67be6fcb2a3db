// The addresses of IPv6 that a server without a chosen one listens at.
#include "os/ipv6_addresses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ucx::detail {
namespace {

/// Returns those of the system's own list, each with its interface, but for addresses of one link.
std::set<std::string> listed_by_system() {
  std::set<std::string> found;
  std::ifstream list("/proc/net/if_inet6");
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string digits;
    std::string index;
    std::string prefix;
    std::string scope;
    std::string flags;
    std::string interface;
    words >> digits >> index >> prefix >> scope >> flags >> interface;
    if (scope == "20") continue;
    std::string host;
    for (std::size_t at = 0; at < digits.size(); at += 4) {
      host.append(at == 0 ? "" : ":").append(digits, at, 4);
    }
    found.insert(to_string(socket_address(host, 0)) + ' ' + interface);
  }
  return found;
}

TEST(Ipv6Addresses, AreThoseThatTheSystemListsButForThoseOfOneLink) {
  const auto told = ipv6_addresses();
  ASSERT_TRUE(told) << told.why().text;
  std::set<std::string> found;
  for (const ipv6_address& each : *told) {
    EXPECT_TRUE(each.address.is_v6());
    EXPECT_EQ(each.address.port(), 0);
    for (const char* const of_one_link : {"fe8", "fe9", "fea", "feb"}) {
      EXPECT_FALSE(each.address.host().starts_with(of_one_link)) << each.address;
    }
    found.insert(to_string(each.address) + ' ' + each.interface);
  }
  EXPECT_EQ(found, listed_by_system());
}

}  // namespace
}  // namespace ucx::detail
