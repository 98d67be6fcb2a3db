#include "os/device_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ucp/transport_group.hpp"

namespace ucx::detail {
namespace {

TEST(DeviceName, IsTakenApartAtItsColon) {
  struct row {
    std::string name;
    std::string device;
    std::string port;
  };
  for (const row& each : {row{"mlx5_0:1", "mlx5_0", "1"}, row{"eth0", "eth0", ""},
                          row{":1", "", "1"}, row{"a:1:2", "a", "1:2"}, row{"a:", "a", ""}}) {
    EXPECT_EQ(parse_device_name(each.name).device, each.device) << each.name;
    EXPECT_EQ(parse_device_name(each.name).port, each.port) << each.name;
  }
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
  using pairs = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [group, member] : pairs{{"rc", "rc_verbs"},
                                           {"rc", "rc_mlx5"},
                                           {"ib", "rc_verbs"},
                                           {"ib", "ud_mlx5"},
                                           {"rc_x", "rc_mlx5"},
                                           {"ud_v", "ud_verbs"},
                                           {"shm", "cma"},
                                           {"all", "tcp"},
                                           {"tcp", "tcp"}}) {
    EXPECT_TRUE(stands_for(group, member)) << group << " and " << member;
  }
  for (const auto& [group, other] : pairs{{"rc_x", "rc_verbs"},
                                          {"mm", "cma"},
                                          {"r", "rc_verbs"},
                                          {"ib", "tcp"},
                                          {"rc_verbs", "rc"}}) {
    EXPECT_FALSE(stands_for(group, other)) << group << " and " << other;
  }
}

TEST(DeviceList, HasNoBlanks) {
  EXPECT_EQ(without_blanks(" eth0, mlx5_0:1 ,\tmlx5_1:1\n"), "eth0,mlx5_0:1,mlx5_1:1");
  EXPECT_EQ(without_blanks(" ^ eth0"), "^eth0");
  EXPECT_EQ(without_blanks("  "), "");
}

TEST(DeviceList, IsSpelledOut) {
  const std::vector<std::string> listed{"mlx5_0:1", "mlx5_0:2", "mlx5_1:1"};
  const std::pair<std::string, std::string> rows[] = {
      {"mlx5_0", "mlx5_0:1,mlx5_0:2"},
      {"eth0,mlx5_1", "eth0,mlx5_1:1"},
      {"mlx5_[0-7]:1", "mlx5_0:1,mlx5_1:1"},
      {"^mlx5_0", "^mlx5_0:1,mlx5_0:2"},
      {"mlx5_0:1,mlx5_2:1", "mlx5_0:1,mlx5_2:1"},
      {"all", "all"},
      {"mlx5_2,eth[0-1]", "mlx5_2,eth[0-1]"},
      {",eth0,,", "eth0"},
      {"", ""},
      {"^", "^"},
  };
  for (const auto& [asked, spelled] : rows) EXPECT_EQ(spelled_out(asked, listed), spelled) << asked;
}

}  // namespace
}  // namespace ucx::detail
