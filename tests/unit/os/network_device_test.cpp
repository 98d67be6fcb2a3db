// Which devices an address stands for.
#include "os/network_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "os/device_name.hpp"
#include "support/transports/outer_address.hpp"

namespace ucx::detail {
namespace {

using test::outer_address;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(NetworkDevice, OfAnAddressAreItsInterfaceAndAllUsablePorts) {
  const socket_address outer = outer_address();
  if (outer.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
  const std::vector<rdma_port> ports{{"mlx4_0:1", "ACTIVE"}, {"mlx4_0:2", "ACTIVE"},
                                     {"mlx5_0:1", "DOWN"},   {"mlx5_1:1", "ACTIVE"},
                                     {"mlx5_2:1", "INIT"},   {"mlx5_3:1", ""}};
  const device_limit found = devices_of(outer, ports);
  ASSERT_EQ(found.devices.size(), 5U) << found.why;
  EXPECT_THAT(found.why, HasSubstr(" is on the interface " + found.devices[0]));
  EXPECT_THAT(found.devices,
              ElementsAre(testing::_, "mlx4_0:1", "mlx4_0:2", "mlx5_1:1", "mlx5_3:1"));
}

TEST(NetworkDevice, OfAnAddressAreNotThePortsOfOtherNetworks) {
  const socket_address outer = outer_address();
  if (outer.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
  const std::vector<std::string> alone = devices_of(outer, {}).devices;
  ASSERT_EQ(alone.size(), 1U);
  const std::string& own = alone.front();
  const std::vector<rdma_port> ports{
      {"mlx5_0:1", "ACTIVE", "", {own}},
      {"mlx5_1:1", "ACTIVE", "", {"rail1"}},
      {"mlx5_2:1", "ACTIVE", "", {own, own + ".100"}},     // RoCE over a VLAN, too
      {"mlx5_3:1", "ACTIVE", "", {own + ".100"}},          // over a VLAN alone
      {"mlx5_4:1", "ACTIVE", "", {own + "0", "x" + own}},  // names that begin or end alike
      {"mlx5_5:1", "ACTIVE"},                              // InfiniBand
      {"mlx5_6:1", "DOWN", "its port is DOWN", {"rail6"}}};
  const device_limit found = devices_of(outer, ports);
  EXPECT_THAT(found.devices, ElementsAre(own, "mlx5_0:1", "mlx5_2:1", "mlx5_5:1"));
  std::vector<std::string> others;
  for (const device_limit::other_port& each : found.others) others.push_back(each.name);
  EXPECT_THAT(others, ElementsAre("mlx5_1:1", "mlx5_3:1", "mlx5_4:1"));
  ASSERT_FALSE(others.empty());
  EXPECT_EQ(found.others.front().why,
            "it is on the network of rail1, and " + outer.host() + " on that of " + own);
}

TEST(NetworkDevice, AreNoMoreThanUcxTakes) {
  const socket_address outer = outer_address();
  if (outer.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
  std::vector<rdma_port> ports;
  for (int i = 0; i < 100; ++i) ports.push_back({"mlx5_" + std::to_string(i) + ":1", "ACTIVE"});
  EXPECT_EQ(devices_of(outer, ports).devices.size(), most_devices);
}

TEST(NetworkDevice, OfLoopbackIsItsInterfaceAlone) {
  const std::vector<rdma_port> ports{{"mlx5_0:1", "ACTIVE"}};
  const device_limit found = devices_of(socket_address("127.0.0.1:0"), ports);
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_THAT(found.why, HasSubstr("RDMA devices are not for loopback"));
  EXPECT_TRUE(devices_of(socket_address("127.0.0.1:0"), {{"mlx5_0:1", "ACTIVE", "", {"rail0"}}})
                  .others.empty())
      << "that is no matter of networks";
}

TEST(NetworkDevice, AreNotLimitedWhereNoInterfaceIsMeant) {
  const std::vector<rdma_port> ports{{"mlx5_0:1", "ACTIVE"}};
  for (const char* address : {"0.0.0.0:0", "192.0.2.77:0"}) {
    const device_limit found = devices_of(socket_address(address), ports);
    EXPECT_THAT(found.devices, IsEmpty()) << address;
    EXPECT_THAT(found.why, Not(IsEmpty())) << address;
  }
}

}  // namespace
}  // namespace ucx::detail
