#include "os/source_network.hpp"

#include <gtest/gtest.h>

#include <string>

#include "ucx/socket_address.hpp"

namespace ucx::detail {
namespace {

std::string network_of(const char* address) {
  return source_network(*socket_address(address).native());
}

TEST(SourceNetwork, IsTheAddressOfIpv4) {
  EXPECT_EQ(network_of("10.1.2.3:7"), "10.1.2.3");
  EXPECT_EQ(network_of("[::ffff:10.1.2.3]:7"), "10.1.2.3");
}

TEST(SourceNetwork, IsHalfOfTheAddressOfIpv6) {
  EXPECT_EQ(network_of("[2001:db8:1:2:3:4:5:6]:7"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("[::1]:7"), "::/64");
}

TEST(SourceNetwork, IsNothingOfAUnixSocket) { EXPECT_EQ(network_of("unix:/x.sock"), ""); }

}  // namespace
}  // namespace ucx::detail
