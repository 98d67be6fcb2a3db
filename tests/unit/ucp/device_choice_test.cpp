// What a context makes of the devices that it is to use.
#include "ucp/device_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~variable() { ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

class DeviceChoice : public testing::Test {
 protected:
  DeviceChoice() {
    network.link().resources = {"self/memory0",      "posix/memory",     "tcp/eth0",
                                "tcp/eth01",         "tcp/lo",           "rc_verbs/rxe0:1",
                                "ud_verbs/rxe0:1",   "rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_0:2",
                                "rc_mlx5/mlx5_10:1", "cuda_copy/cuda"};
    network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"},
                                 {"mlx5_0:2", "ACTIVE"},
                                 {"mlx5_10:1", "ACTIVE"},
                                 {"rxe0:1", "ACTIVE"}};
    options.log.level = log_level::info;
    options.log.sink = [this](log_level level, std::string_view line) {
      lines.push_back(std::string(to_string(level)).append(" ").append(line));
    };
  }

  /// Makes a context; keeps what it has and what it says.
  void make(const device_limit& limit = {}) {
    lines.clear();
    what.clear();
    ec = errc::timed_out;  // of an earlier call
    transports.clear();
    unused.clear();
    const auto made = core_access::make_context(process.api(), options, limit);
    if (made) {
      ec.clear();
      transports = made->transports();
      unused = made->unused();
    } else {
      ec = made.why().code;
      what = made.why().text;
    }
    EXPECT_EQ(network.live().contexts, ec ? 0U : 1U) << "also those that were made to look";
  }
  void make_with(const std::vector<std::string>& devices) {
    options.devices = devices;
    make();
  }

  /// Returns what a context has set UCX's key to; empty where UCX has its default.
  std::string value_in_force(const std::string& wanted) {
    std::error_code failed;
    const context made = core_access::make_context(process.api(), options, failed);
    EXPECT_FALSE(failed);
    for (const auto& [key, value] : made.configuration()) {
      if (key == wanted) return value;
    }
    return {};
  }

  test::fake_network network;
  test::fake_process& process = network.add_process("process");
  context_options options;
  std::vector<std::string> lines;
  std::vector<std::string> transports;
  std::vector<std::string> unused;
  std::string what;
  std::error_code ec;
};

TEST_F(DeviceChoice, HasTheDeviceThatIsNamed) {
  for (const std::string name : {"rxe0:1", "mlx5_0:1", "mlx5_0:2", "mlx5_10:1", "eth0", "eth01"}) {
    make_with({name});
    EXPECT_FALSE(ec) << name << ": " << what;
    EXPECT_THAT(transports, Contains(HasSubstr("/" + name)));
    EXPECT_THAT(unused, IsEmpty()) << name;
  }
  make_with({"all"});
  EXPECT_FALSE(ec) << what;
  make_with({"eth0", "rxe0:1", "mlx5_0:2"});
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, ElementsAre("self/memory0", "posix/memory", "tcp/eth0", "rc_verbs/rxe0:1",
                                      "ud_verbs/rxe0:1", "rc_mlx5/mlx5_0:2"));
}

TEST_F(DeviceChoice, RefusesADeviceThatIsNotThereAndListsWhatIs) {
  for (const std::string name : {"eth1", "eth", "rxe0:2", "mlx5_1:1", "rxe", "memory", "cuda"}) {
    make_with({"eth0", name});
    EXPECT_EQ(ec, errc::bad_configuration) << name;
    EXPECT_THAT(what, HasSubstr("there is no device \"" + name + '"'));
    EXPECT_THAT(what,
                HasSubstr("; there are eth0, eth01, lo, rxe0:1, mlx5_0:1, mlx5_0:2, mlx5_10:1"));
    EXPECT_THAT(what, Not(HasSubstr("memory0")));
  }
}

TEST_F(DeviceChoice, ListsOnlyWhatTheTransportsAllow) {
  options.transports = {"tcp", "self"};
  make_with({"rxe0:1"});
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, HasSubstr("there is no device \"rxe0:1\" with the transports that are allowed; "
                              "there are eth0, eth01, lo"));
  options.transports = {"self"};
  make_with({"rxe0:1"});
  EXPECT_THAT(what, HasSubstr("there is none at all"));
}

TEST_F(DeviceChoice, ListsThemWhereUcxMakesNoContext) {
  options.transports = {"rc_verbs"};
  make_with({"eth0"});
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, AllOf(HasSubstr("none of the transports and devices that were asked for"),
                          HasSubstr("; there are rxe0:1")));
}

TEST_F(DeviceChoice, TakesWhatIsThereOfALimit) {
  network.link().rdma_ports.push_back({"mlx5_11:1", "DOWN"});
  network.link().rdma_ports.push_back({"mlx5_12:1", "ACTIVE"});
  make({{"eth0", "rxe0:1", "mlx5_12:1"}, "192.0.2.1 is on the interface eth0"});
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, AllOf(Contains("tcp/eth0"), Contains("rc_verbs/rxe0:1")));
  EXPECT_THAT(transports, Not(Contains("tcp/lo")));
  EXPECT_THAT(unused, Contains("mlx5_11:1: its port is DOWN"));
  EXPECT_THAT(unused, Contains(HasSubstr("mlx5_12:1: UCX has no transport for it")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: mlx5_11:1"))));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), HasSubstr("not used: mlx5_12:1"))));
  EXPECT_THAT(lines, Contains(HasSubstr("limited to eth0 rxe0:1 mlx5_12:1: 192.0.2.1 is on")));
}

TEST_F(DeviceChoice, RefusesALimitOfWhichNothingIsThere) {
  make({{"tun0", "mlx5_12:1"}, "10.0.0.1 is on the interface tun0"});
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, AllOf(HasSubstr("tun0, mlx5_12:1"), HasSubstr("10.0.0.1 is on"),
                          HasSubstr("; there are eth0")));
}

TEST_F(DeviceChoice, SaysNothingOfRdmaOnLoopback) {
  make({{"lo"}, "127.0.0.1 is on the interface lo"});
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(unused, IsEmpty());
}

TEST_F(DeviceChoice, PutsNamesOfTheCallerBeforeTheLimit) {
  options.configuration["NET_DEVICES"] = "rxe0:1,eth7";
  make({{"eth0"}, "an interface"});
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, AllOf(Contains("rc_verbs/rxe0:1"), Not(Contains("tcp/eth0"))));
  EXPECT_THAT(unused, ElementsAre(HasSubstr("eth7: ")));
}

TEST_F(DeviceChoice, SaysThatALimitComesBeforeTheEnvironment) {
  const variable environment("UCX_NET_DEVICES", "lo");
  make({{"eth0"}, "an interface"});
  EXPECT_THAT(transports, Contains("tcp/eth0"));
  EXPECT_THAT(lines, Contains(HasSubstr("counts before UCX_NET_DEVICES=lo")));
}

TEST_F(DeviceChoice, TellsThatALimitReplacesTheEnvironment) {
  network.link().rdma_ports = {};
  const device_limit limit{{"eth0"}, "an interface"};
  for (const std::string named : {"nothere:1", "lo", "eth0,lo", "^eth0", "eth01"}) {
    const variable environment("UCX_NET_DEVICES", named.c_str());
    make(limit);
    const auto told = AllOf(HasSubstr("UCX_NET_DEVICES=" + named + ": limited to eth0"),
                            HasSubstr("an interface"));
    EXPECT_THAT(unused, ElementsAre(told));
    EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), told)));
  }
  for (const std::string named : {"eth0", "all", "^lo"}) {
    const variable environment("UCX_NET_DEVICES", named.c_str());
    make(limit);
    EXPECT_THAT(unused, IsEmpty()) << named;
  }
  const variable environment("UCX_NET_DEVICES", "lo");
  options.configuration_precedence = precedence::environment;
  make(limit);
  EXPECT_THAT(unused, IsEmpty()) << "there it counts";
}

TEST_F(DeviceChoice, MakesALimitNarrowerByTheEnvironment) {
  const device_limit limit{{"eth0", "mlx5_0:1", "mlx5_0:2", "mlx5_10:1", "rxe0:1"},
                           "192.0.2.1 is on the interface eth0"};
  using names = std::vector<std::string>;
  const std::pair<std::string, names> rows[] = {
      {"mlx5_0:1,mlx5_10:1", {"rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_10:1"}},
      {"eth0, mlx5_0:2", {"tcp/eth0", "rc_mlx5/mlx5_0:2"}},
      {"mlx5_0", {"rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_0:2"}},
      {"^rxe0:1,eth0", {"rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_0:2", "rc_mlx5/mlx5_10:1"}},
  };
  for (const auto& [named, expected] : rows) {
    const variable environment("UCX_NET_DEVICES", named.c_str());
    make(limit);
    EXPECT_FALSE(ec) << named << ": " << what;
    names network_transports;
    for (const std::string& each : transports) {
      const bool of_host = each.starts_with("self/") || each.starts_with("posix/");
      if (!of_host && !each.starts_with("cuda")) network_transports.push_back(each);
    }
    EXPECT_EQ(network_transports, expected) << named;
    EXPECT_THAT(unused, IsEmpty()) << named << ": it is as it was asked for";
    EXPECT_THAT(lines, Contains(HasSubstr("on the interface eth0, and UCX_NET_DEVICES="))) << named;
  }
  const variable environment("UCX_NET_DEVICES", "mlx5_0:1,mlx5_7:1");
  make(limit);
  EXPECT_THAT(transports, AllOf(Contains("rc_mlx5/mlx5_0:1"), Not(Contains("tcp/eth0"))));
  EXPECT_THAT(unused, ElementsAre(HasSubstr("UCX_NET_DEVICES=mlx5_0:1,mlx5_7:1: limited to")));
}

TEST_F(DeviceChoice, LeavesOutPortsOfOtherNetworks) {
  device_limit limit{{"eth0", "mlx5_0:1"}, "192.0.2.1 is on the interface eth0"};
  limit.others = {{"mlx5_0:2", "it is on the network of rail1, and 192.0.2.1 on that of eth0"},
                  {"mlx5_10:1", "it is on the network of rail2, and 192.0.2.1 on that of eth0"}};
  network.link().rdma_ports.pop_back();
  make(limit);
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, AllOf(Contains("rc_mlx5/mlx5_0:1"), Not(Contains("rc_mlx5/mlx5_0:2")),
                                Not(Contains("rc_mlx5/mlx5_10:1"))));
  EXPECT_THAT(unused, ElementsAre(AllOf(HasSubstr("mlx5_0:2: it is on the network of rail1"),
                                        HasSubstr("UCX_NET_DEVICES or the options may name it")),
                                  HasSubstr("mlx5_10:1: it is on the network of rail2")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: mlx5_0:2"))));
  limit.devices = {"eth0"};
  limit.others.push_back({"mlx5_0:1", "it is on the network of rail0"});
  make(limit);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), HasSubstr("not used: mlx5_0:1"))))
      << "no hardware is left";
  options.require_rdma = true;
  make(limit);
  EXPECT_EQ(ec, errc::no_rdma);
  EXPECT_THAT(what, HasSubstr("mlx5_0:1: it is on the network of rail0"));
}

TEST_F(DeviceChoice, SaysWhyALimitLeavesOutAPort) {
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  device_limit limit{{"eth0"}, "fd00::1 is on the interface eth0, and IPv6 goes without RDMA"};
  limit.is_without_rdma = true;
  make(limit);
  constexpr const char* told =
      "mlx5_0:1: the context is limited to eth0: fd00::1 is on the interface eth0, and IPv6 goes "
      "without RDMA";
  EXPECT_THAT(unused, ElementsAre(told));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: mlx5_0:1"))));
  limit.is_without_rdma = false;  // a port that came up when the limit was known already
  make(limit);
  EXPECT_THAT(unused, ElementsAre(told));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), HasSubstr("not used: mlx5_0:1"))));
  for (int i = 1; i < 64; ++i) limit.devices.push_back("eth" + std::to_string(i));
  make(limit);
  EXPECT_THAT(unused, Contains("mlx5_0:1: UCX takes 64 devices"));
  limit.is_without_rdma = true;
  make(limit);
  EXPECT_THAT(unused, Contains(AllOf(HasSubstr("mlx5_0:1: "),
                                     HasSubstr("fd00::1 is on the interface eth0"))));
}

TEST_F(DeviceChoice, TakesAPortElsewhereThatTheEnvironmentNames) {
  device_limit limit{{"eth0", "mlx5_0:1"}, "192.0.2.1 is on the interface eth0"};
  limit.others = {{"mlx5_0:2", "elsewhere"}, {"mlx5_10:1", "elsewhere"}};
  network.link().rdma_ports.pop_back();
  {
    const variable environment("UCX_NET_DEVICES", "eth0,mlx5_10:1");
    make(limit);
    EXPECT_THAT(transports, AllOf(Contains("tcp/eth0"), Contains("rc_mlx5/mlx5_10:1"),
                                  Not(Contains("rc_mlx5/mlx5_0:1"))));
    EXPECT_THAT(unused, IsEmpty()) << "it is as it was asked for";
  }
  for (const std::string named : {"all", "^eth01"}) {
    const variable environment("UCX_NET_DEVICES", named.c_str());
    make(limit);
    EXPECT_THAT(transports, AllOf(Contains("tcp/eth0"), Contains("rc_mlx5/mlx5_0:1"),
                                  Not(Contains("rc_mlx5/mlx5_10:1"))))
        << named;
    EXPECT_THAT(unused, Contains(HasSubstr("mlx5_10:1: elsewhere"))) << named;
  }
}

// The process may lock too little: UCX's worker would try to register its buffers for ever.

TEST_F(DeviceChoice, GoesWithoutHardwareIfItMayLockTooLittle) {
  network.link().lockable = 64U << 10U;
  const auto told = [](const std::string& device) {
    return AllOf(HasSubstr(device + ": "), HasSubstr("may lock"),
                 HasSubstr("RDMA needs 72 MiB more"), HasSubstr("`ulimit -l unlimited`"),
                 HasSubstr("--ulimit memlock=-1"));
  };
  const auto plain = ElementsAre("self/memory0", "posix/memory", "tcp/eth0", "tcp/eth01", "tcp/lo");
  make();
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, plain);
  EXPECT_THAT(unused,
              ElementsAre(told("rxe0:1"), told("mlx5_0:1"), told("mlx5_0:2"), told("mlx5_10:1")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), told("not used: mlx5_0:1"))));
  make_with({"all"});
  EXPECT_THAT(transports, plain);
  options.devices = {};
  make({{"eth0", "rxe0:1"}, "an interface"});
  EXPECT_THAT(transports, AllOf(Contains("tcp/eth0"), Not(Contains("tcp/lo"))));
  EXPECT_THAT(unused, Contains(told("rxe0:1")));
  EXPECT_THAT(unused, Not(Contains(HasSubstr("mlx5_0:1: the process"))));
  options.transports = {"tcp", "rc_verbs", "self"};
  make();
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, ElementsAre("self/memory0", "tcp/eth0", "tcp/eth01", "tcp/lo"));
  EXPECT_THAT(unused, Contains(told("rxe0:1")));
  EXPECT_THAT(unused, Not(Contains(HasSubstr("transport rc_verbs")))) << "the lock is why";
  options.transports = {};
  options.configuration["NET_DEVICES"] = "eth0,rxe0:1";
  make();
  EXPECT_THAT(transports, ElementsAre("self/memory0", "posix/memory", "tcp/eth0"));
  EXPECT_THAT(unused, ElementsAre(told("rxe0:1")));
  options.configuration = {};
  const variable environment("UCX_NET_DEVICES", "eth01, rxe0:1");
  options.configuration_precedence = precedence::environment;
  make();
  EXPECT_THAT(transports, Not(Contains("rc_verbs/rxe0:1")));
  EXPECT_THAT(unused, ElementsAre(told("rxe0:1")));
}

TEST_F(DeviceChoice, EndsWhereItMayLockTooLittleForWhatIsRequired) {
  network.link().lockable = 64U << 10U;
  const auto told = AllOf(HasSubstr("making a context with the RDMA hardware "),
                          HasSubstr("rxe0:1"), HasSubstr("`ulimit -l unlimited`"));
  options.require_rdma = true;
  make();
  EXPECT_EQ(ec, errc::no_lockable_memory);
  EXPECT_THAT(what, told);
  options.require_rdma = false;
  make_with({"eth0", "rxe0:1"});
  EXPECT_EQ(ec, errc::no_lockable_memory) << "it is named";
  EXPECT_THAT(what, told);
  options.devices = {};
  options.transports = {"rc_verbs", "self"};
  make();
  EXPECT_EQ(ec, errc::no_lockable_memory) << "nothing else is left";
  EXPECT_THAT(what, told);
}

TEST_F(DeviceChoice, CopiesWhatTcpSendsWhereHardwareIsLeftOut) {
  EXPECT_EQ(value_in_force("ZCOPY_THRESH"), "auto");
  network.link().lockable = 64U << 10U;
  EXPECT_EQ(value_in_force("ZCOPY_THRESH"), "inf");
}

// Over TCP, zero-copy sends end the process when a peer is gone: they are for hardware that is
// used.

TEST_F(DeviceChoice, SetsUcxUpForHardwareThatItUses) {
  EXPECT_EQ(value_in_force("ZCOPY_THRESH"), "auto");
  EXPECT_EQ(process.count(test::call::init), 1U);
  EXPECT_EQ(value_in_force("SOCKADDR_TLS_PRIORITY"), "tcp,rdmacm");
}

TEST_F(DeviceChoice, SetsUcxUpForTcpWhereEachPortIsHindered) {
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {
      {"mlx5_0:1", "ACTIVE", "/dev/infiniband/uverbs0 can not be opened: Permission denied"},
      {"mlx5_1:1", "ACTIVE", "its port has no GID: its interface has no address"},
      {"mlx5_2:1", "DOWN", "its port is DOWN"}};
  EXPECT_EQ(value_in_force("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(process.count(test::call::init), 1U) << "the system says it before UCX does";
  make();
  EXPECT_THAT(unused, Contains("mlx5_0:1: /dev/infiniband/uverbs0 can not be opened: Permission "
                               "denied"));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), HasSubstr("not used: mlx5_0:1"))));
}

TEST_F(DeviceChoice, SetsUcxUpForTcpWhereItHasNoTransportForThePort) {
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  EXPECT_EQ(value_in_force("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(process.count(test::call::init), 2U) << "UCX tells by its resources";
  EXPECT_EQ(network.live().contexts, 0U);
  process.faults().fail(test::call::init, UCS_ERR_NO_MEMORY, 2);
  make();
  EXPECT_EQ(ec, errc::no_memory) << "of the second one";
}

TEST_F(DeviceChoice, MakesNoWorkerForWhichItMayLockTooLittle) {
  std::error_code failed;
  const context made = core_access::make_context(process.api(), options, failed);
  ASSERT_FALSE(failed);
  network.link().lockable = 64U << 10U;  // others have locked the rest
  try {
    const worker none(made);
    FAIL() << "it would not work";
  } catch (const ucx::error& refused) {
    EXPECT_EQ(refused.code(), errc::no_lockable_memory);
    EXPECT_THAT(refused.what(), HasSubstr("`ulimit -l unlimited`"));
  }
  EXPECT_EQ(process.count(test::call::worker_create), 0U);
}

TEST_F(DeviceChoice, FindsNamesWithBlanksAndWithoutPorts) {
  using names = std::vector<std::string>;
  for (const std::string named : {" eth0 , mlx5_0:1,mlx5_0:2", "eth0,mlx5_0", "eth0,,mlx5_0,"}) {
    const variable environment("UCX_NET_DEVICES", named.c_str());
    make();
    EXPECT_FALSE(ec) << what;
    EXPECT_EQ(transports, (names{"self/memory0", "posix/memory", "tcp/eth0", "rc_mlx5/mlx5_0:1",
                                 "rc_mlx5/mlx5_0:2"}))
        << named;
    EXPECT_THAT(unused, IsEmpty()) << named;
  }
  make_with({"mlx5_0"});
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(transports, AllOf(Contains("rc_mlx5/mlx5_0:1"), Contains("rc_mlx5/mlx5_0:2")));
  options.devices = {};
  const variable transports_too("UCX_TLS", "tcp, rc_mlx5");
  make();
  EXPECT_THAT(transports, AllOf(Contains("tcp/eth0"), Contains("rc_mlx5/mlx5_0:1")));
}

TEST_F(DeviceChoice, TellsOfADeviceOfTheEnvironmentThatIsNotThere) {
  const variable environment("UCX_NET_DEVICES", "eth0,mlx5_9:1");
  make();
  EXPECT_FALSE(ec) << what;
  EXPECT_THAT(unused, ElementsAre("mlx5_9:1: UCX has no transport for it among those that are "
                                  "allowed"));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), HasSubstr("not used: mlx5_9:1"))));
}

TEST_F(DeviceChoice, SaysWhatHindersAPort) {
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE", "its port has no GID"},
                               {"mlx5_1:1", "INIT", "its port waits"}};
  make();
  EXPECT_THAT(unused, ElementsAre("mlx5_0:1: its port has no GID", "mlx5_1:1: its port waits"));
  options.transports = {"tcp"};
  make();
  EXPECT_THAT(unused, ElementsAre("mlx5_0:1: its port has no GID", "mlx5_1:1: its port waits"));
}

TEST_F(DeviceChoice, RequiresHardwareAndSaysWhyThereIsNone) {
  options.require_rdma = true;
  make();
  EXPECT_FALSE(ec) << what;
  options.transports = {"ud_verbs", "self"};
  make();
  EXPECT_FALSE(ec) << "it is hardware, too: " << what;
  options.transports = {"tcp"};
  make();
  EXPECT_EQ(ec, errc::no_rdma);
  EXPECT_THAT(what, HasSubstr("none is RDMA hardware; mlx5_0:1: UCX has no transport for it among "
                              "those that are allowed"));
  options.transports = {};
  make({{"lo"}, "127.0.0.1 is on the interface lo"});
  EXPECT_EQ(ec, errc::no_rdma);
  EXPECT_THAT(what, HasSubstr("none is RDMA hardware, limited to lo: 127.0.0.1 is on"));
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {{"mlx5_0:1", "DOWN", "its port is DOWN"}};
  make();
  EXPECT_EQ(ec, errc::no_rdma);
  EXPECT_THAT(what, HasSubstr("none is RDMA hardware; mlx5_0:1: its port is DOWN"));
  options.transports = {"rc", "self"};
  options.devices = {"mlx5_0:1"};
  make();
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, HasSubstr("; mlx5_0:1: its port is DOWN"));
}

TEST_F(DeviceChoice, SaysWhyALimitLeavesNothingOfTheTransports) {
  options.transports = {"rc", "self"};
  network.link().resources = {"tcp/lo", "rc_mlx5/mlx5_0:1"};
  make({{"lo"}, "127.0.0.1 is on the interface lo, and RDMA devices are not for loopback"});
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, HasSubstr("limited to lo: 127.0.0.1 is on the interface lo, and RDMA devices "
                              "are not for loopback"));
}

TEST_F(DeviceChoice, TellsOfHardwareThatUcxDoesNotUse) {
  network.link().resources = {"self/memory0", "tcp/eth0"};
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}, {"mlx5_1:1", "INIT"}};
  make();
  EXPECT_FALSE(ec);
  EXPECT_THAT(unused, ElementsAre(HasSubstr("mlx5_0:1: UCX has no transport for it: it was built "
                                            "without, or lacks a part of it"),
                                  "mlx5_1:1: its port is INIT"));
  options.devices = {"eth0"};
  make();
  EXPECT_THAT(unused, IsEmpty()) << "nobody wanted it";
  options.devices = {};
  options.transports = {"tcp"};
  make();
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: mlx5_0:1"))));
}

TEST_F(DeviceChoice, TellsOfHardwareThatSocketsLeaveOut) {
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"},
                               {"mlx5_0:2", "DOWN"},
                               {"mlx5_1:1", "ACTIVE", "its port has no GID"},
                               {"mlx5_2:1", "ACTIVE"}};
  options.transports = {"socket"};
  const auto made = core_access::make_context(process.api(), options, device_limit());
  ASSERT_TRUE(made);
  EXPECT_THAT(
      made->unused(),
      ElementsAre(HasSubstr("mlx5_0:1, mlx5_2:1: RDMA hardware is for connections by UCX")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: mlx5_0:1"))));
  const auto near = core_access::make_context(process.api(), options, {.is_near = true});
  ASSERT_TRUE(near);
  EXPECT_THAT(near->unused(), IsEmpty()) << "it would not be used within one machine";
}

TEST_F(DeviceChoice, TellsOfTransportsThatHaveNoDevice) {
  options.transports = {"tcp", "dc", "rc", "shm"};
  network.link().resources = {"tcp/eth0", "dc/none", "rc/none", "posix/memory", "rc_verbs/rxe0:1"};
  network.link().rdma_ports = {};
  make();
  EXPECT_THAT(unused, ElementsAre(HasSubstr("transport sysv: ")));
  network.link().resources = {"tcp/eth0"};
  make();
  EXPECT_THAT(unused,
              ElementsAre(HasSubstr("transport sysv: "), "transport dc: UCX has no device for it",
                          "transport rc: UCX has no device for it",
                          "transport shm: UCX has no device for it"));
}

TEST_F(DeviceChoice, TellsOfTransportsThatAreLeftOutAndWhy) {
  network.link().resources = {"tcp/eth0", "posix/memory", "cma/memory", "self/memory0"};
  network.link().rdma_ports = {};
  network.link().version_minor = 18;
  options.transports = {"posix", "cma", "self"};
  make();
  const auto told = HasSubstr("transport cma: with UCX 1.18.1 it ends a reader whose owner");
  EXPECT_THAT(unused, ElementsAre(told));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("warning"), told)));
  options.transports = {"sm", "self"};
  make();
  EXPECT_THAT(unused, ElementsAre(HasSubstr("transport sysv: whoever has this process's group")));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("info"), HasSubstr("not used: transport sysv"))));
  options.transports = {};
  const variable environment("UCX_TLS", "all");
  make();
  EXPECT_THAT(unused, ElementsAre(HasSubstr("transport sysv: ")));
}

TEST_F(DeviceChoice, RefusesMoreDevicesThanUcxTakes) {
  std::vector<std::string> many;
  for (int i = 0; i < 65; ++i) many.push_back("eth" + std::to_string(i));
  make_with(many);
  EXPECT_EQ(ec, errc::bad_configuration);
  EXPECT_THAT(what, AllOf(HasSubstr("names 65"), HasSubstr("no more than 64")));
  options.devices = {};
  network.link().version_minor = 22;  // which knows ranges
  options.configuration["NET_DEVICES"] = "mlx5_[0-64]:1";
  make();
  EXPECT_EQ(ec, errc::bad_configuration);
  options.configuration = {};
  const variable environment("UCX_NET_DEVICES", "mlx5_[0-99]:1");
  make();
  EXPECT_EQ(ec, errc::bad_configuration);
}

}  // namespace
}  // namespace ucx::detail
