#include "detail/device_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detail/transport_group.hpp"

namespace ucx::detail {
namespace {

TEST(DeviceName, IsTakenApartAtItsColon) {
  EXPECT_EQ(parse_device_name("mlx5_0:1").device, "mlx5_0");
  EXPECT_EQ(parse_device_name("mlx5_0:1").port, "1");
  EXPECT_EQ(parse_device_name("eth0").device, "eth0");
  EXPECT_EQ(parse_device_name("eth0").port, "");
  EXPECT_EQ(parse_device_name(":1").device, "");
  EXPECT_EQ(parse_device_name("a:1:2").port, "1:2");
  EXPECT_EQ(parse_device_name("a:").device, "a");
}

TEST(DeviceName, StandsForTheDeviceOfThatNameAndNoOther) {
  const std::vector<std::string> listed{"eth0",     "eth0.5",   "eth01",     "rxe0:1",
                                        "mlx5_0:1", "mlx5_0:2", "mlx5_10:1", "mlx5_1:1"};
  for (const std::string& asked : listed) {
    for (const std::string& each : listed) {
      EXPECT_EQ(names_device(asked, each), asked == each) << asked << " and " << each;
    }
  }
}

TEST(DeviceName, StandsForAllPortsWhereItHasNone) {
  EXPECT_TRUE(names_device("mlx5_0", "mlx5_0:1"));
  EXPECT_TRUE(names_device("mlx5_0", "mlx5_0:2"));
  EXPECT_FALSE(names_device("mlx5_0", "mlx5_00:1"));
  EXPECT_FALSE(names_device("mlx5_", "mlx5_0:1"));
  EXPECT_FALSE(names_device("mlx5_0:", "mlx5_0:1"));
  EXPECT_FALSE(names_device("mlx5_0:1", "mlx5_0")) << "a port that is not listed";
  EXPECT_FALSE(names_device("", "mlx5_0:1"));
  EXPECT_FALSE(names_device("", ":1"));
}

TEST(DeviceName, MayBeARange) {
  for (const std::string listed : {"mlx5_2:1", "mlx5_3:1", "mlx5_10:1"}) {
    EXPECT_TRUE(names_device("mlx5_[2-10]:1", listed)) << listed;
    EXPECT_TRUE(names_device("mlx5_[2-10]", listed)) << listed;
  }
  for (const std::string listed : {"mlx5_1:1", "mlx5_11:1", "mlx5_2:2", "mlx5_02:1", "mlx5_:1"}) {
    EXPECT_FALSE(names_device("mlx5_[2-10]:1", listed)) << listed;
  }
  EXPECT_TRUE(names_device("mlx5_[0-1]:[1-2]", "mlx5_1:2"));
  EXPECT_FALSE(names_device("mlx5_[3-2]:1", "mlx5_2:1"));
  EXPECT_TRUE(names_device("odd[1-", "odd[1-")) << "no range, but a name";
  EXPECT_TRUE(names_device("odd[]", "odd[]"));
  EXPECT_FALSE(names_device("e[0-99999999999]", "e1")) << "a number that does not fit";
}

TEST(DeviceName, AllIsEveryDevice) {
  EXPECT_TRUE(names_device("all", "eth0"));
  EXPECT_TRUE(names_device("all", "rxe0:1"));
  EXPECT_FALSE(names_device("all:1", "rxe0:1"));
  EXPECT_FALSE(names_device("eth0", "all"));
}

TEST(DeviceList, AllowsWhatItNames) {
  EXPECT_TRUE(allows_device("eth0,rxe0:1", "rxe0:1"));
  EXPECT_TRUE(allows_device("eth0,rxe0:1", "eth0"));
  EXPECT_FALSE(allows_device("eth0,rxe0:1", "eth1"));
  EXPECT_TRUE(allows_device("all", "eth1"));
  EXPECT_FALSE(allows_device("", "eth1"));
}

TEST(DeviceList, AllowsWhatItDoesNotNegate) {
  EXPECT_FALSE(allows_device("^eth0,rxe0", "rxe0:1"));
  EXPECT_TRUE(allows_device("^eth0,rxe0", "eth1"));
}

TEST(DeviceList, CountsEveryNumberOfItsRanges) {
  EXPECT_EQ(count_devices(""), 0U);
  EXPECT_EQ(count_devices("eth0"), 1U);
  EXPECT_EQ(count_devices("eth0,eth1,mlx5_0:1"), 3U);
  EXPECT_EQ(count_devices("mlx5_[0-63]:1"), 64U);
  EXPECT_EQ(count_devices("mlx5_[0-3]:[1-2],eth0"), 9U);
  EXPECT_GT(count_devices("e[0-4294967295]f[0-4294967295]g[0-4294967295]"), most_devices);
}

TEST(Resource, IsATransportAndADevice) {
  EXPECT_EQ(transport_of("rc_verbs/rxe0:1"), "rc_verbs");
  EXPECT_EQ(device_of("rc_verbs/rxe0:1"), "rxe0:1");
  EXPECT_EQ(transport_of("tcp"), "tcp");
  EXPECT_EQ(device_of("tcp"), "tcp");
}

TEST(TransportGroup, HasItsMembersAndNoOthers) {
  EXPECT_TRUE(stands_for("rc", "rc_verbs"));
  EXPECT_TRUE(stands_for("rc", "rc_mlx5"));
  EXPECT_TRUE(stands_for("ib", "rc_verbs"));
  EXPECT_TRUE(stands_for("ib", "ud_mlx5"));
  EXPECT_TRUE(stands_for("rc_x", "rc_mlx5"));
  EXPECT_TRUE(stands_for("ud_v", "ud_verbs"));
  EXPECT_TRUE(stands_for("shm", "cma"));
  EXPECT_TRUE(stands_for("all", "tcp"));
  EXPECT_TRUE(stands_for("tcp", "tcp"));
  EXPECT_FALSE(stands_for("rc_x", "rc_verbs"));
  EXPECT_FALSE(stands_for("mm", "cma"));
  EXPECT_FALSE(stands_for("r", "rc_verbs"));
  EXPECT_FALSE(stands_for("ib", "tcp"));
  EXPECT_FALSE(stands_for("rc_verbs", "rc"));
}

}  // namespace
}  // namespace ucx::detail
