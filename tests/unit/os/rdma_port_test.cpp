#include "os/rdma_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/simulated/pretended_ports.hpp"

namespace ucx::detail {
namespace {

using test::list_port;

class PretendedPorts : public testing::Test, protected test::pretended_ports {};

TEST(RdmaPorts, AreThoseThatTheSystemListsWithTheirStates) {
  const test::temporary_directory folder;
  list_port(folder / "", "mlx5_1", "2", "1: DOWN");
  list_port(folder / "", "mlx5_1", "1", "4: ACTIVE");
  list_port(folder / "", "mlx5_0", "1", "");
  std::filesystem::create_directories(folder / "no_ports");
  const std::vector<rdma_port> found = rdma_ports({.devices = (folder / "").string()});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "mlx5_0:1");
  EXPECT_EQ(found[1].name, "mlx5_1:1");
  EXPECT_EQ(found[1].state, "ACTIVE");
  EXPECT_EQ(found[2].name, "mlx5_1:2");
  EXPECT_EQ(found[2].state, "DOWN");
  EXPECT_TRUE(found[0].is_usable()) << "nobody says that it is not";
  EXPECT_TRUE(found[1].is_usable());
  EXPECT_FALSE(found[2].is_usable());
}

TEST(RdmaPorts, AreNoneWhereTheSystemListsNone) {
  EXPECT_THAT(rdma_ports({.devices = "/nonexistent"}), testing::IsEmpty());
}

TEST_F(PretendedPorts, HaveNoHindranceWhereTheyCanBeUsed) {
  add("mlx5_0");
  add("mlx5_1", "Ethernet");
  EXPECT_EQ(hindrance("mlx5_0:1"), "");
  EXPECT_EQ(hindrance("mlx5_1:1"), "");
}

TEST_F(PretendedPorts, AreTheKernelsOwnWhereItNamesTheirInterface) {
  add("mlx5_0", "Ethernet");
  add("soft0", "Ethernet");
  std::ofstream(folder / "infiniband" / "soft0" / "parent") << "eth0\n";
  const std::vector<rdma_port> found = rdma_ports(where);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_FALSE(found[0].is_software);
  EXPECT_TRUE(found[1].is_software);
}

TEST_F(PretendedPorts, OfOneDeviceAreEachForItself) {
  add("mlx4_0");
  add_port("mlx4_0", "2", "1: DOWN", "Ethernet");
  EXPECT_EQ(hindrance("mlx4_0:1"), "");
  EXPECT_EQ(hindrance("mlx4_0:2"), "its port is DOWN");
}

TEST_F(PretendedPorts, OfInfiniBandWaitForASubnetManager) {
  add("mlx5_0");
  add("mlx5_1", "Ethernet");
  for (const std::string state : {"INIT", "ARMED"}) {
    std::ofstream(port_of("mlx5_0", "1") / "state") << "2: " << state << '\n';
    std::ofstream(port_of("mlx5_1", "1") / "state") << "2: " << state << '\n';
    EXPECT_EQ(hindrance("mlx5_0:1"),
              "its port is " + state + ", and waits for the network's subnet manager");
    EXPECT_EQ(hindrance("mlx5_1:1"), "its port is " + state);
  }
}

TEST_F(PretendedPorts, NeedOneGidOfMany) {
  constexpr const char* none = "0000:0000:0000:0000:0000:0000:0000:0000";
  add("mlx5_0", "Ethernet");
  set_gid("mlx5_0", "1", 0, none);
  set_gid("mlx5_0", "1", 1, none);
  EXPECT_EQ(hindrance("mlx5_0:1"), "its port has no GID: its interface has no address");
  set_gid("mlx5_0", "1", 3, "0000:0000:0000:0000:0000:ffff:c000:0201");
  EXPECT_EQ(hindrance("mlx5_0:1"), "");
}

TEST_F(PretendedPorts, HaveTheInterfacesOfTheirAddresses) {
  add("mlx5_0", "Ethernet");
  for (int i = 0; i < 4; ++i) set_interface("mlx5_0", i, "eth0");
  set_interface("mlx5_0", 4, "eth0.100");
  set_interface("mlx5_0", 5, "");
  set_interface("mlx5_0", 255, "");
  add("mlx5_1", "Ethernet");
  set_interface("mlx5_1", 0, "bond0");
  add("mlx5_2");  // InfiniBand: addresses of no interface
  set_interface("mlx5_2", 0, "");
  add("mlx5_3", "Ethernet");  // a kernel that does not tell
  EXPECT_THAT(interfaces("mlx5_0:1"), testing::ElementsAre("eth0", "eth0.100"));
  EXPECT_THAT(interfaces("mlx5_1:1"), testing::ElementsAre("bond0"));
  EXPECT_THAT(interfaces("mlx5_2:1"), testing::IsEmpty());
  EXPECT_THAT(interfaces("mlx5_3:1"), testing::IsEmpty());
  for (const rdma_port& each : rdma_ports(where)) {
    EXPECT_THAT(each.interfaces, testing::IsEmpty()) << "nobody asked: " << each.name;
  }
}

TEST_F(PretendedPorts, AreThereAsLongAsTheSystemListsThem) {
  add("mlx5_0");
  EXPECT_TRUE(is_rdma_port_there("mlx5_0:1", where));
  EXPECT_FALSE(is_rdma_port_there("mlx5_0:2", where));
  EXPECT_FALSE(is_rdma_port_there("mlx5_1:1", where));
  std::filesystem::remove_all(std::filesystem::path(where.devices) / "mlx5_0");
  EXPECT_FALSE(is_rdma_port_there("mlx5_0:1", where));
}

TEST_F(PretendedPorts, NeedAFileThatThisProcessMayOpen) {
  add("mlx5_0");
  add("mlx5_1");
  std::filesystem::remove(folder / "dev" / "uverbs1");
  EXPECT_EQ(hindrance("mlx5_0:1"), "");
  EXPECT_THAT(hindrance("mlx5_1:1"),
              testing::AllOf(testing::HasSubstr("/dev/uverbs1 can not be opened"),
                             testing::HasSubstr("No such file")));
  std::filesystem::remove_all(folder / "infiniband_verbs" / "uverbs1");
  EXPECT_THAT(hindrance("mlx5_1:1"), testing::HasSubstr("ib_uverbs"));
}

}  // namespace
}  // namespace ucx::detail
