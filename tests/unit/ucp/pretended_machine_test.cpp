// What a server at an address makes of RDMA devices, from the folders in which the system lists
// them on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "os/network_device.hpp"
#include "os/rdma_port.hpp"
#include "support/basics/changed_variable.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/pretended_ports.hpp"
#include "support/transports/outer_address.hpp"
#include "ucx/context.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* no_address = "0000:0000:0000:0000:0000:0000:0000:0000";

class PretendedMachine : public testing::Test, protected pretended_ports {
 protected:
  void SetUp() override {
    if (outer_.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
    own_ = detail::devices_of(outer_, {}).devices.front();
  }
  /// A device of RoCE at this interface.
  void add_roce(const std::string& device, const std::string& interface) {
    add(device, "Ethernet");
    set_interface(device, 0, interface);
  }
  /// Makes the context of a server. UCX has a transport for each port without a hindrance.
  void serve() {
    link_options& link = network_.link();
    link.rdma_ports = detail::rdma_ports(where);
    link.resources = {"self/memory0", "tcp/" + own_};
    for (const detail::rdma_port& each : link.rdma_ports) {
      if (each.hindrance.empty()) link.resources.push_back("rc_mlx5/" + each.name);
    }
    const auto limit = detail::devices_of(outer_, detail::rdma_ports_with_interfaces(where));
    const auto made =
        detail::core_access::make_context(network_.add_process("server").api(), {}, limit);
    ASSERT_TRUE(made) << made.why().text;
    unused_ = made->unused();
    used_.clear();
    for (const std::string& each : made->transports()) {
      if (each.starts_with("rc_")) used_.push_back(each.substr(each.find('/') + 1));
    }
  }

  const socket_address outer_ = outer_address();
  std::string own_;  // the interface of that
  fake_network network_;
  std::vector<std::string> used_;  // ports
  std::vector<std::string> unused_;
};

TEST_F(PretendedMachine, UsesAllPortsOfADevice) {
  add_roce("mlx4_0", own_);
  add_port("mlx4_0", "2", "4: ACTIVE", "Ethernet");
  set_interface("mlx4_0", 0, own_, "2");
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx4_0:1", "mlx4_0:2"));
  EXPECT_THAT(unused_, IsEmpty());
}

TEST_F(PretendedMachine, UsesThePortOfADeviceThatIsOnItsNetwork) {
  add_roce("mlx4_0", own_);
  add_port("mlx4_0", "2", "4: ACTIVE", "Ethernet");
  set_interface("mlx4_0", 0, "rail1", "2");
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx4_0:1"));
  EXPECT_THAT(unused_, ElementsAre(HasSubstr("mlx4_0:2: it is on the network of rail1")));
}

TEST_F(PretendedMachine, LeavesRailsThatTheEnvironmentDoesNotName) {
  add_roce("mlx5_0", own_);
  add_roce("mlx5_1", "rail1");
  add_roce("mlx5_2", "rail2");
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx5_0:1"));
  EXPECT_THAT(unused_, ElementsAre(HasSubstr("mlx5_1:1: it is on the network of rail1"),
                                   HasSubstr("mlx5_2:1: it is on the network of rail2")));
  {
    const changed_variable named("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1,mlx5_2:1");
    serve();
    EXPECT_THAT(used_, ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_2:1"));
    EXPECT_THAT(unused_, IsEmpty());
  }
  const changed_variable named("UCX_NET_DEVICES", "mlx5_1");
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx5_1:1"));
}

TEST_F(PretendedMachine, UsesInfiniBandWithoutAnIpInterface) {
  add("mlx5_0");
  set_interface("mlx5_0", 0, "");
  add("mlx5_1");
  std::ofstream(port_of("mlx5_1", "1") / "state") << "2: INIT\n";
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx5_0:1"));
  EXPECT_THAT(unused_, ElementsAre(HasSubstr("mlx5_1:1: its port is INIT, and waits for")));
}

TEST_F(PretendedMachine, UsesRoceByOneGidOfSeveral) {
  add_roce("mlx5_0", "rail1");
  set_gid("mlx5_0", "1", 0, no_address);
  set_gid("mlx5_0", "1", 1, "fe80:0000:0000:0000:0202:c9ff:fe00:0001");
  set_gid("mlx5_0", "1", 2, "0000:0000:0000:0000:0000:ffff:c000:0201");
  set_interface("mlx5_0", 1, "rail1");
  set_interface("mlx5_0", 2, own_);
  set_interface("mlx5_0", 255, "");
  serve();
  EXPECT_THAT(used_, ElementsAre("mlx5_0:1"));
  EXPECT_THAT(unused_, IsEmpty());
}

TEST_F(PretendedMachine, DoesWithoutHinderedPortsAndSaysWhy) {
  add_roce("mlx5_0", own_);
  std::ofstream(port_of("mlx5_0", "1") / "state") << "1: DOWN\n";
  add_roce("mlx5_1", own_);
  set_gid("mlx5_1", "1", 0, no_address);
  add_roce("mlx5_2", own_);
  std::filesystem::remove(folder / "dev" / "uverbs2");
  serve();
  EXPECT_THAT(used_, IsEmpty());
  EXPECT_THAT(unused_,
              ElementsAre("mlx5_0:1: its port is DOWN", HasSubstr("mlx5_1:1: its port has no GID"),
                          HasSubstr("uverbs2 can not be opened: No such file")));
}

}  // namespace
}  // namespace ucx::test
