#include "ucp/configuration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "support/fake_ucp/fake_network.hpp"
#include "ucp/configuration_key.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t usual_segment = (std::size_t{1} << 20U) + 4096;

/// Keeps what the process prints to stdout and stderr (UCX prints to both) until it is asked.
class captured_output {
 public:
  captured_output() {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      saved_.at(static_cast<std::size_t>(fd)) = ::dup(fd);
      ::dup2(::fileno(file_), fd);
    }
  }
  ~captured_output() { restore(); }
  captured_output(const captured_output&) = delete;
  captured_output& operator=(const captured_output&) = delete;

  std::string text() {
    restore();
    std::rewind(file_);
    std::string text;
    for (int letter = 0; (letter = std::fgetc(file_)) != EOF;) text += static_cast<char>(letter);
    return text;
  }

 private:
  void restore() {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      int& saved = saved_.at(static_cast<std::size_t>(fd));
      if (saved < 0) continue;
      ::dup2(saved, fd);
      ::close(std::exchange(saved, -1));
    }
  }

  std::FILE* file_ = std::tmpfile();
  std::array<int, 3> saved_{-1, -1, -1};
};

/// An environment variable for the length of a scope.
class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~scoped_variable() { ::unsetenv(name_); }
  scoped_variable(const scoped_variable&) = delete;
  scoped_variable& operator=(const scoped_variable&) = delete;

 private:
  const char* name_;
};

/// A configuration of one api, as far as it came.
struct made {
  made(ucp_api& api, const context_options& options) : config(configuration::make(api, options)) {
    if (config) return;
    ec = config.why().code;
    what = config.why().text;
  }
  std::string value(const std::string& key) const {
    if (!config) return "(no configuration)";
    for (const auto& [name, value] : config->values()) {
      if (name == key) return value;
    }
    return "(none)";
  }
  result<configuration> config;
  std::string what;
  std::error_code ec;
};

context_options with(std::map<std::string, std::string> configuration) {
  context_options options;
  options.configuration = std::move(configuration);
  return options;
}

/// Makes a context and a worker of a configuration: there UCX looks at the rest of the values.
ucs_status_t use(ucp_api& api, const configuration& config) {
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  ucp_context_h context = nullptr;
  ucs_status_t status = api.init(&params, config.handle(), &context);
  if (status != UCS_OK) return status;
  const ucp_worker_params_t worker_params = {};
  ucp_worker_h worker = nullptr;
  status = api.worker_create(context, &worker_params, &worker);
  if (status == UCS_OK) api.worker_destroy(worker);
  api.cleanup(context);
  return status;
}

version_number loaded_version() {
  version_number version;
  real_ucp().get_version(&version.major, &version.minor, &version.patch);
  return version;
}

std::string spelled(const char* key) {
  return find_configuration_key(key, loaded_version()).spellings.at(0);
}

/// With the UCX that the program runs with, at a log level that shows its warnings: what is not
/// said is not said because UCX saw nothing to complain about.
class ConfigurationOfUcx : public testing::Test {
 protected:
  ConfigurationOfUcx() { made(real_ucp(), with({{"LOG_LEVEL", "warn"}})); }
  ~ConfigurationOfUcx() override { made(real_ucp(), with({{"LOG_LEVEL", "fatal"}})); }
};

void expect_refused(const context_options& options, const testing::Matcher<std::string>& text) {
  captured_output output;
  const made result(real_ucp(), options);
  EXPECT_THAT(output.text(), IsEmpty());
  EXPECT_EQ(result.ec, errc::bad_configuration) << result.what;
  EXPECT_THAT(result.what, text);
}

// Without this the tests below could not fail.
TEST_F(ConfigurationOfUcx, ShowsWhatUcxPrints) {
  const made result(real_ucp(), {});
  auto* const config = const_cast<ucp_config_t*>(result.config->handle());
  captured_output output;
  EXPECT_NE(real_ucp().config_modify(config, "ZCOPY_THRESH", "banana"), UCS_OK);
  EXPECT_THAT(output.text(), HasSubstr("banana"));
}

TEST_F(ConfigurationOfUcx, MakesAContextAndAWorker) {
  captured_output output;
  const made result(real_ucp(), {});
  EXPECT_FALSE(result.ec) << result.what;
  EXPECT_EQ(result.config->segment_size(), usual_segment);
  EXPECT_EQ(use(real_ucp(), *result.config), UCS_OK);
  EXPECT_THAT(output.text(), IsEmpty());
  EXPECT_EQ(result.value(spelled("TCP_TX_SEG_SIZE")), std::to_string(usual_segment));
  EXPECT_EQ(result.value(spelled("TCP_RX_SEG_SIZE")), std::to_string(usual_segment));
  EXPECT_EQ(result.value("CM_REUSEADDR"), "y");
  EXPECT_THAT(result.value("TLS"), StartsWith("^sysv"));
}

TEST_F(ConfigurationOfUcx, TakesKeysOfEveryKind) {
  for (const auto& [key, value] : std::map<std::string, std::string>{{"ZCOPY_THRESH", "64k"},
                                                                     {"MAX_RNDV_RAILS", "1"},
                                                                     {"TLS", "tcp,self"},
                                                                     {"NET_DEVICES", "lo"},
                                                                     {"KEEPALIVE_INTERVAL", "10s"},
                                                                     {"UNIFIED_MODE", "y"},
                                                                     {"RNDV_SCHEME", "am"},
                                                                     {"TCP_NODELAY", "n"},
                                                                     {"TCP_KEEPIDLE", "20s"},
                                                                     {"TCP_MAX_IOV", "6"},
                                                                     {"TCP_PORT_RANGE", "0"},
                                                                     {"TX_MAX_BUFS", "100"},
                                                                     {"CM_REUSEADDR", "n"},
                                                                     {"TCP_CM_REUSEADDR", "n"},
                                                                     {"POSIX_FIFO_SIZE", "128"},
                                                                     {"MM_FIFO_SIZE", "128"},
                                                                     {"MEMTYPE_CACHE", "n"},
                                                                     {"TCP_TX_SEG_SIZE", "64k"}}) {
    captured_output output;
    const made result(real_ucp(), with({{key, value}}));
    EXPECT_FALSE(result.ec) << result.what;
    EXPECT_EQ(use(real_ucp(), *result.config), UCS_OK) << key;
    EXPECT_THAT(output.text(), IsEmpty()) << key;
  }
}

TEST_F(ConfigurationOfUcx, NamesAnUnknownKey) {
  expect_refused(with({{"NO_SUCH_KEY_AT_ALL", "1"}}), HasSubstr("\"NO_SUCH_KEY_AT_ALL\""));
  expect_refused(with({{"ZCOPY_TRESH", "1"}}),
                 AllOf(HasSubstr("\"ZCOPY_TRESH\""), HasSubstr("did you mean ZCOPY_THRESH")));
  expect_refused(with({{"TCP_TX_SEGSIZE", "1"}}), HasSubstr("TCP_TX_SEG_SIZE"));
  expect_refused(with({{"UCX_TLS", "tcp"}}), HasSubstr("without the prefix UCX_"));
  expect_refused(with({{"", "1"}}), HasSubstr("unknown UCX configuration key \"\""));
}

TEST_F(ConfigurationOfUcx, NamesKeyAndValueOfABadValue) {
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"ZCOPY_THRESH", "banana"},   // UCX's own: it would print, and refuse
           {"TCP_TX_SEG_SIZE", "lots"},  // a transport's: it would print, and go on
           {"TX_SEG_SIZE", "lots"},
           {"TCP_KEEPIDLE", "soon"},
           {"POSIX_FIFO_SIZE", "-1"},
           {"CM_REUSEADDR", "perhaps"},
           {"LOG_LEVEL", "loud"},
           {"MAX_RNDV_RAILS", "2x"},  // it would take this for 2
           {"UNIFIED_MODE", "maybe"},
           {"RNDV_SCHEME", "post"},
           {"NET_DEVICES", "lo\neth0"},
           {"RC_TIMEOUT", "1 s"}}) {
    expect_refused(with({{key, value}}),
                   AllOf(HasSubstr(key + "=" + value), HasSubstr("expected ")));
  }
  expect_refused(with({{"UNIFIED_MODE", "maybe"}}), HasSubstr("expected y or n"));
}

TEST_F(ConfigurationOfUcx, NamesATransportThatUcxDoesNotHave) {
  context_options options;
  options.transports = {"tcp", "carrier_pigeon"};
  expect_refused(options, AllOf(HasSubstr("\"carrier_pigeon\""), HasSubstr("posix")));
  expect_refused(with({{"TLS", "tcp,pigeon"}}), AllOf(HasSubstr("TLS"), HasSubstr("\"pigeon\"")));
  expect_refused(with({{"TLS", "^pigeon"}}), HasSubstr("\"pigeon\""));
  for (const char* const name : {"", "tcp,self", "^tcp", "\\tcp", "ud:aux"}) {
    options.transports = {name};
    expect_refused(options, HasSubstr('"' + std::string(name) + '"'));
  }
}

TEST_F(ConfigurationOfUcx, NamesADeviceThatCanNotBeOne) {
  for (const char* const name : {"", "lo,eth0", "^lo", "l o", "lo\n"}) {
    context_options options;
    options.devices = {name};
    expect_refused(options, HasSubstr('"' + std::string(name) + '"'));
  }
}

TEST_F(ConfigurationOfUcx, RefusesKeysThatOnlyTheEnvironmentSets) {
  expect_refused(with({{"LOG_FILE", "/tmp/x"}}),
                 AllOf(HasSubstr("LOG_FILE"), HasSubstr("UCX_LOG_FILE")));
}

TEST_F(ConfigurationOfUcx, RefusesToSayThingsTwice) {
  context_options options = with({{"TLS", "tcp"}});
  options.transports = {"tcp"};
  expect_refused(options, AllOf(HasSubstr("\"transports\""), HasSubstr("\"TLS\"")));
  options = with({{"NET_DEVICES", "lo"}});
  options.devices = {"lo"};
  expect_refused(options, AllOf(HasSubstr("\"devices\""), HasSubstr("\"NET_DEVICES\"")));
  expect_refused(with({{"TX_SEG_SIZE", "64k"}, {"TCP_TX_SEG_SIZE", "64k"}}),
                 AllOf(HasSubstr("\"TX_SEG_SIZE\""), HasSubstr("\"TCP_TX_SEG_SIZE\"")));
}

TEST_F(ConfigurationOfUcx, TakesTransportsAndDevices) {
  context_options options;
  options.transports = {"tcp", "self"};
  options.devices = {"lo"};
  captured_output output;
  const made result(real_ucp(), options);
  EXPECT_EQ(use(real_ucp(), *result.config), UCS_OK);
  EXPECT_THAT(output.text(), IsEmpty());
  EXPECT_EQ(result.value("TLS"), "tcp,self");
  EXPECT_EQ(result.value("NET_DEVICES"), "lo");
}

TEST_F(ConfigurationOfUcx, LeavesSegmentsAloneWhereTcpIsNotAllowed) {
  context_options options;
  options.transports = {"posix", "self"};
  captured_output output;
  const made result(real_ucp(), options);
  EXPECT_EQ(use(real_ucp(), *result.config), UCS_OK);
  EXPECT_THAT(output.text(), IsEmpty());
  EXPECT_EQ(result.value(spelled("TCP_TX_SEG_SIZE")), "(none)");
}

TEST_F(ConfigurationOfUcx, OptionsWinOverTheEnvironment) {
  const scoped_variable environment("UCX_MAX_RNDV_RAILS", "1");
  EXPECT_EQ(made(real_ucp(), {}).value("MAX_RNDV_RAILS"), "1");
  EXPECT_EQ(made(real_ucp(), with({{"MAX_RNDV_RAILS", "3"}})).value("MAX_RNDV_RAILS"), "3");
}

TEST_F(ConfigurationOfUcx, MakesWorkersWithExtremeSegmentSizes) {
  for (const char* const size : {"1k", "32m"}) {
    captured_output output;
    const made result(real_ucp(), with({{"TX_SEG_SIZE", size}, {"RX_SEG_SIZE", size}}));
    EXPECT_EQ(use(real_ucp(), *result.config), UCS_OK) << size;
    EXPECT_THAT(output.text(), IsEmpty()) << size;
  }
}

/// With a simulated UCX of any version, which tells what it was given.
class ConfigurationOfAnyUcx : public testing::Test {
 protected:
  ~ConfigurationOfAnyUcx() override { network.expect_clean(); }
  void set_version(unsigned minor) { network.link().version_minor = minor; }

  test::fake_network network;
  test::fake_process& process = network.add_process("process");
  ucp_api& api = process.api();
};

TEST_F(ConfigurationOfAnyUcx, RaisesSegmentsInTheVersionsSpelling) {
  for (const auto& [minor, prefix] : std::map<unsigned, std::string>{
           {13, ""}, {16, ""}, {17, "TCP_"}, {18, "TCP_"}, {22, "TCP_"}}) {
    set_version(minor);
    const made result(api, {});
    EXPECT_FALSE(result.ec);
    EXPECT_EQ(result.config->segment_size(), usual_segment);
    EXPECT_EQ(result.value(prefix + "TX_SEG_SIZE"), std::to_string(usual_segment));
    EXPECT_EQ(result.value(prefix + "RX_SEG_SIZE"), std::to_string(usual_segment));
  }
}

TEST_F(ConfigurationOfAnyUcx, ReceiveSegmentsAreAsLargeAsSends) {
  struct expectation {
    std::map<std::string, std::string> asked;
    std::size_t sent;
    std::string send_value;
    std::string receive_value;
  };
  const std::string usual = std::to_string(usual_segment);
  set_version(22);
  for (const expectation& each : {
           expectation{{{"TCP_TX_SEG_SIZE", "64k"}}, 65536, "64k", "65536"},
           expectation{{{"TX_SEG_SIZE", "4m"}}, 4194304, "4m", "4194304"},
           expectation{{{"TCP_RX_SEG_SIZE", "64k"}}, 65536, "65536", "64k"},
           expectation{{{"RX_SEG_SIZE", "4m"}}, usual_segment, usual, "4m"},
           expectation{{{"TX_SEG_SIZE", "1m"}, {"TCP_RX_SEG_SIZE", "2m"}}, 1048576, "1m", "2m"},
       }) {
    const made result(api, with(each.asked));
    EXPECT_FALSE(result.ec) << result.what;
    EXPECT_EQ(result.config->segment_size(), each.sent);
    EXPECT_EQ(result.value("TCP_TX_SEG_SIZE"), each.send_value);
    EXPECT_EQ(result.value("TCP_RX_SEG_SIZE"), each.receive_value);
  }
}

TEST_F(ConfigurationOfAnyUcx, MindsSegmentsOfTheEnvironment) {
  {
    const scoped_variable environment("UCX_TCP_TX_SEG_SIZE", "256k");
    const made result(api, {});
    EXPECT_EQ(result.config->segment_size(), 262144U);
    EXPECT_EQ(result.value("TX_SEG_SIZE"), "(none)");
    EXPECT_EQ(result.value("RX_SEG_SIZE"), "262144");
    EXPECT_EQ(made(api, with({{"TX_SEG_SIZE", "8k"}})).config->segment_size(), 8192U);
    const made conflict(api, with({{"RX_SEG_SIZE", "8k"}}));
    EXPECT_EQ(conflict.ec, errc::bad_configuration);
    EXPECT_THAT(conflict.what, AllOf(HasSubstr("262144"), HasSubstr("8192")));
  }
  const scoped_variable environment("UCX_TCP_RX_SEG_SIZE", "banana");
  const made result(api, {});
  EXPECT_EQ(result.ec, errc::bad_configuration);
  EXPECT_THAT(result.what, HasSubstr("UCX_TCP_RX_SEG_SIZE=banana"));
}

TEST_F(ConfigurationOfAnyUcx, RefusesSegmentsThatMakeNoWorker) {
  for (const auto& options : {with({{"TX_SEG_SIZE", "2m"}, {"RX_SEG_SIZE", "1m"}}),
                              with({{"TX_SEG_SIZE", "1023"}}), with({{"RX_SEG_SIZE", "33m"}}),
                              with({{"TX_SEG_SIZE", "inf"}}), with({{"TX_SEG_SIZE", "auto"}})}) {
    const made result(api, options);
    EXPECT_EQ(result.ec, errc::bad_configuration);
    EXPECT_THAT(result.what, HasSubstr("X_SEG_SIZE"));
  }
}

TEST_F(ConfigurationOfAnyUcx, SetsSegmentsOnlyWhereTcpIsAllowed) {
  for (const auto& [list, allowed] : std::map<std::string, bool>{{"all", true},
                                                                 {"tcp", true},
                                                                 {"posix,tcp", true},
                                                                 {"posix,all", true},
                                                                 {"\\tcp,self", true},
                                                                 {"^tcp", false},
                                                                 {"^self,tcp", false},
                                                                 {"^self", true},
                                                                 {"posix,self", false}}) {
    const made result(api, with({{"TLS", list}}));
    EXPECT_EQ(result.value("TX_SEG_SIZE") != "(none)", allowed) << list;
    const scoped_variable environment("UCX_TLS", list.c_str());
    EXPECT_EQ(made(api, {}).value("TX_SEG_SIZE") != "(none)", allowed) << list;
  }
}

TEST_F(ConfigurationOfAnyUcx, CopiesWhatTcpSendsUnlessTold) {
  EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(made(api, with({{"ZCOPY_THRESH", "64k"}})).value("ZCOPY_THRESH"), "64k");
  {
    const scoped_variable environment("UCX_ZCOPY_THRESH", "auto");
    EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "auto");
  }
  const scoped_variable environment("UCX_TLS", "posix,self");
  EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "auto");
}

TEST_F(ConfigurationOfAnyUcx, LetsUcxSendInPlaceWhereRdmaMayBeUsed) {
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}, {"mlx5_1:1", "DOWN"}};
  EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "auto");
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "eth0,mlx5_0:1"}})).value("ZCOPY_THRESH"), "auto");
  EXPECT_EQ(made(api, with({{"TLS", "tcp,ib"}})).value("ZCOPY_THRESH"), "auto");
  // The hardware alone is no reason: what goes by TCP dies of it.
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "eth0"}})).value("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "mlx5_1:1,eth0"}})).value("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(made(api, with({{"TLS", "tcp,self"}})).value("ZCOPY_THRESH"), "inf");
  EXPECT_EQ(made(api, with({{"TLS", "^ib"}})).value("ZCOPY_THRESH"), "inf");
  {
    const scoped_variable environment("UCX_NET_DEVICES", "lo");
    EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "inf");
  }
  const scoped_variable environment("UCX_NET_DEVICES", "eth0, mlx5_0:1");
  EXPECT_EQ(made(api, {}).value("ZCOPY_THRESH"), "auto");
}

TEST_F(ConfigurationOfAnyUcx, DoesWithoutEventsOfSoftwareDevices) {
  constexpr const char* key = "ASYNC_EVENTS";
  constexpr const char* unset = "(none)";
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  EXPECT_EQ(made(api, {}).value(key), unset);
  network.link().rdma_ports = {{.name = "rxe0:1", .state = "ACTIVE", .is_software = true}};
  EXPECT_EQ(made(api, {}).value(key), "n");
  EXPECT_EQ(made(api, with({{"IB_ASYNC_EVENTS", "y"}})).value(key), "y");
  EXPECT_EQ(made(api, with({{"TLS", "tcp,self"}})).value(key), unset);
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "eth0"}})).value(key), unset);
  network.link().rdma_ports.push_back({"mlx5_0:1", "ACTIVE"});
  EXPECT_EQ(made(api, {}).value(key), "n");
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "mlx5_0:1"}})).value(key), unset);
  const scoped_variable environment("UCX_IB_ASYNC_EVENTS", "y");
  EXPECT_EQ(made(api, {}).value(key), unset) << "UCX reads the environment";
}

TEST_F(ConfigurationOfAnyUcx, SpellsDevicesAsThisUcxReadsThem) {
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}, {"mlx5_0:2", "ACTIVE"}};
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "eth0, mlx5_0"}})).value("NET_DEVICES"),
            "eth0,mlx5_0:1,mlx5_0:2");
  {
    const scoped_variable environment("UCX_NET_DEVICES", "mlx5_[0-3]:2,lo");
    EXPECT_EQ(made(api, {}).value("NET_DEVICES"), "mlx5_0:2,lo");
  }
  const scoped_variable environment("UCX_NET_DEVICES", "eth0,mlx5_0:1");
  EXPECT_EQ(made(api, {}).value("NET_DEVICES"), "all") << "UCX's, who reads the environment";
  network.link().version_minor = 22;
  EXPECT_EQ(made(api, with({{"NET_DEVICES", "^mlx5_[0-3], eth1"}})).value("NET_DEVICES"),
            "^mlx5_[0-3],eth1");
}

TEST_F(ConfigurationOfAnyUcx, TellsPeersItsSegmentsUnlessToldNotTo) {
  constexpr const char* key = "ADDRESS_VERSION";
  EXPECT_EQ(made(api, {}).value(key), "v2");
  EXPECT_EQ(made(api, with({{key, "v1"}})).value(key), "v1");
  EXPECT_EQ(made(api, with({{"TLS", "posix,self"}})).value(key), "v1");
  // Longer ones can not be told.
  EXPECT_EQ(made(api, with({{"TX_SEG_SIZE", "4095k"}})).value(key), "v2");
  EXPECT_EQ(made(api, with({{"TX_SEG_SIZE", "4m"}})).value(key), "v1");
  {
    const scoped_variable environment("UCX_ADDRESS_VERSION", "v1");
    EXPECT_EQ(made(api, {}).value(key), "v1");
  }
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  EXPECT_EQ(made(api, {}).value(key), "v1");
}

TEST_F(ConfigurationOfAnyUcx, ConnectsByTcpFirstWherePeerMayLackRdma) {
  constexpr const char* key = "SOCKADDR_TLS_PRIORITY";
  EXPECT_EQ(made(api, {}).value(key), "rdmacm,tcp,sockcm");
  network.link().rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  EXPECT_EQ(made(api, {}).value(key), "tcp,rdmacm");
  EXPECT_EQ(made(api, with({{"TLS", "ib"}})).value(key), "rdmacm,tcp,sockcm");
  EXPECT_EQ(made(api, with({{key, "rdmacm"}})).value(key), "rdmacm");
  const scoped_variable environment("UCX_SOCKADDR_TLS_PRIORITY", "tcp");
  EXPECT_EQ(made(api, {}).value(key), "rdmacm,tcp,sockcm") << "UCX's, who reads the environment";
}

TEST_F(ConfigurationOfAnyUcx, ConnectsWithoutBlockingUnlessTold) {
  EXPECT_EQ(made(api, {}).value("CONN_NB"), "y");
  EXPECT_EQ(made(api, with({{"TCP_CONN_NB", "n"}})).value("CONN_NB"), "n");
  EXPECT_EQ(made(api, with({{"CONN_NB", "n"}})).value("CONN_NB"), "n");
  for (const char* variable : {"UCX_TCP_CONN_NB", "UCX_CONN_NB"}) {
    const scoped_variable environment(variable, "n");
    EXPECT_EQ(made(api, {}).value("CONN_NB"), "(none)");
  }
  const scoped_variable environment("UCX_TLS", "posix,self");
  EXPECT_EQ(made(api, {}).value("CONN_NB"), "(none)");
}

TEST_F(ConfigurationOfAnyUcx, RaisesUcxsLimitOfConnections) {
  constexpr const char* key = "ASYNC_MAX_EVENTS";
  set_version(13);
  EXPECT_EQ(made(api, {}).value(key), "65536");
  EXPECT_EQ(made(api, with({{"TLS", "posix,self"}})).value(key), "(none)");
  {
    const scoped_variable environment("UCX_ASYNC_MAX_EVENTS", "2048");
    EXPECT_EQ(made(api, {}).value(key), "(none)") << "UCX reads the environment";
  }
  set_version(14);
  EXPECT_EQ(made(api, {}).value(key), "(none)") << "UCX knows it and does nothing with it";
}

TEST_F(ConfigurationOfAnyUcx, LetsARestartedServerHaveItsPort) {
  EXPECT_EQ(made(api, {}).value("CM_REUSEADDR"), "y");
  EXPECT_EQ(made(api, with({{"CM_REUSEADDR", "n"}})).value("CM_REUSEADDR"), "n");
  EXPECT_EQ(made(api, with({{"TCP_CM_REUSEADDR", "n"}})).value("CM_REUSEADDR"), "n");
  const scoped_variable environment("UCX_TCP_CM_REUSEADDR", "n");
  EXPECT_EQ(made(api, {}).value("CM_REUSEADDR"), "(none)");
}

TEST_F(ConfigurationOfAnyUcx, TakesSharedMemoryFromItsFileSystem) {
  set_version(22);
  const made result(api, {});
  EXPECT_EQ(result.value("POSIX_ALLOC"), "md");
  EXPECT_EQ(result.value("SYSV_ALLOC"), "(none)");
  EXPECT_EQ(result.value("POSIX_SHM_MIN_SIZE"), std::to_string(128U << 20U));
}

TEST_F(ConfigurationOfAnyUcx, UsesGroupMemoryOnlyWhenNamed) {
  set_version(22);
  EXPECT_EQ(made(api, {}).value("TLS"), "^sysv,xpmem");
  EXPECT_EQ(made(api, with({{"TLS", "^tcp"}})).value("TLS"), "^tcp,sysv,xpmem");
  EXPECT_EQ(made(api, with({{"TLS", "tcp,mm"}})).value("TLS"), "tcp,posix");
  EXPECT_EQ(made(api, with({{"TLS", "tcp,sysv"}})).value("TLS"), "tcp,sysv");
  context_options options;
  options.transports = {"mm", "self"};
  EXPECT_EQ(made(api, options).value("TLS"), "self,posix");
  options.transports = {"sysv", "self"};
  EXPECT_EQ(made(api, options).value("TLS"), "sysv,self");
  for (const auto& [inherited, kept] : std::map<std::string, std::string>{
           {"all", "^sysv,xpmem"}, {"^ib", "^ib,sysv,xpmem"}, {"mm,tcp", "tcp,posix"}}) {
    const scoped_variable environment("UCX_TLS", inherited.c_str());
    EXPECT_EQ(made(api, {}).value("TLS"), kept) << inherited;
    EXPECT_EQ(made(api, options).value("TLS"), "sysv,self");
    options.configuration_precedence = precedence::environment;
    EXPECT_EQ(made(api, options).value("TLS"), kept) << inherited;
    options.configuration_precedence = precedence::options;
  }
}

TEST_F(ConfigurationOfUcx, UsesGroupMemoryOnlyWhenNamed) {
  const auto transports = [](const context_options& options) {
    captured_output output;
    std::string text;
    for (const std::string& each : context(options).transports()) text += each + ' ';
    EXPECT_THAT(output.text(), IsEmpty());
    return text;
  };
  EXPECT_THAT(transports({}), AllOf(Not(HasSubstr("sysv/")), Not(HasSubstr("xpmem/"))));
  const auto group = transports(with({{"TLS", "sm,tcp"}}));
  EXPECT_THAT(group, AllOf(HasSubstr("posix/"), Not(HasSubstr("sysv/"))));
  EXPECT_THAT(transports(with({{"TLS", "sysv,self"}})), HasSubstr("sysv/"));
}

TEST_F(ConfigurationOfAnyUcx, LeavesSharedMemoryAsItWasTold) {
  set_version(22);
  EXPECT_EQ(made(api, with({{"TLS", "posix,self"}})).value("POSIX_SHM_MIN_SIZE"), "(none)");
  const scoped_variable environment("UCX_POSIX_ALLOC", "md,mmap");
  EXPECT_EQ(made(api, {}).value("POSIX_ALLOC"), "(none)");
  EXPECT_EQ(made(api, with({{"TLS", "sysv,self"}})).value("SYSV_ALLOC"), "md");
}

TEST_F(ConfigurationOfAnyUcx, OmitsSharedMemoryThatMayNotBeUsed) {
  set_version(18);
  const made result(api, with({{"TLS", "tcp,posix"}}));
  EXPECT_EQ(result.value("POSIX_ALLOC"), "md");
  EXPECT_EQ(result.value("SYSV_ALLOC"), "(none)");
  EXPECT_EQ(made(api, with({{"TLS", "^shm"}})).value("POSIX_ALLOC"), "(none)");
  EXPECT_EQ(made(api, with({{"TLS", "sm,self"}})).value("SYSV_ALLOC"), "(none)");
  EXPECT_EQ(made(api, with({{"TLS", "sysv,self"}})).value("SYSV_ALLOC"), "md");
}

/// So many keys are set for UCX 1.13 where nobody set one, for each context; and for the first one
/// of a process the log level and the number of sockets, too.
constexpr unsigned default_settings = 7;
constexpr unsigned settings_of_process = 2;

TEST_F(ConfigurationOfAnyUcx, QuietsUcxOnceUnlessTold) {
  const unsigned defaults = default_settings;
  // An earlier test's api may have had this one's address.
  made(network.add_process("other").api(), {});
  made(api, {});
  EXPECT_EQ(process.count(test::call::config_modify), defaults + settings_of_process);
  made(api, {});
  EXPECT_EQ(process.count(test::call::config_modify), 2 * defaults + settings_of_process);

  test::fake_process& told = network.add_process("told");
  const scoped_variable environment("UCX_LOG_LEVEL", "info");
  made(told.api(), {});
  EXPECT_EQ(told.count(test::call::config_modify), defaults + settings_of_process - 1);
}

TEST_F(ConfigurationOfAnyUcx, TakesTheLogLevelOfTheOptions) {
  made(network.add_process("other").api(), {});  // as above
  const made result(api, with({{"LOG_LEVEL", "info"}}));
  EXPECT_EQ(result.value("LOG_LEVEL"), "info");
  EXPECT_EQ(process.count(test::call::config_modify), default_settings + settings_of_process);
}

TEST_F(ConfigurationOfAnyUcx, RefusesKeysOfNewerVersions) {
  set_version(18);
  const made result(api, with({{"TCP_USER_TIMEOUT", "1s"}}));
  EXPECT_EQ(result.ec, errc::bad_configuration);
  EXPECT_THAT(result.what, AllOf(HasSubstr("TCP_USER_TIMEOUT"), HasSubstr("UCX 1.18.1")));
}

TEST_F(ConfigurationOfAnyUcx, RefusesKeysItCanNotTellFromUcxsOwn) {
  network.link().version_minor = 16;
  const made before(api, with({{"MM_SEG_SIZE", "16k"}}));
  EXPECT_FALSE(before.ec) << before.what;
  // Version 1.13 would take it for its own key of that name.
  set_version(13);
  const made result(api, with({{"SELF_SEG_SIZE", "16k"}}));
  EXPECT_EQ(result.ec, errc::bad_configuration);
  EXPECT_THAT(result.what, HasSubstr("SELF_SEG_SIZE"));
}

TEST_F(ConfigurationOfAnyUcx, IsRefusedWhereUcxRefusesAKey) {
  network.link().unknown_keys = {"RC_TIMEOUT"};
  const made result(api, with({{"RC_TIMEOUT", "1s"}}));
  EXPECT_EQ(result.ec, errc::bad_configuration);
  EXPECT_THAT(result.what, AllOf(HasSubstr("RC_TIMEOUT=1s"), HasSubstr("UCX: ")));
}

TEST_F(ConfigurationOfAnyUcx, ForAllTransportsNeedsOneThatTakesIt) {
  set_version(22);
  network.link().unknown_keys = {"CUDA_COPY_MAX_POLL", "CUDA_IPC_MAX_POLL"};
  const made result(api, with({{"MAX_POLL", "8"}}));
  EXPECT_FALSE(result.ec) << result.what;
  network.link().unknown_keys.push_back("TCP_MAX_POLL");
  EXPECT_EQ(made(api, with({{"MAX_POLL", "8"}})).ec, errc::bad_configuration);
}

TEST_F(ConfigurationOfAnyUcx, DoesWithoutTcp) {
  network.link().unknown_keys = {"TX_SEG_SIZE", "RX_SEG_SIZE", "CM_REUSEADDR", "CONN_NB",
                                 "LOG_LEVEL"};
  const made result(api, {});
  EXPECT_FALSE(result.ec) << result.what;
}

TEST_F(ConfigurationOfAnyUcx, ReportsEveryCallThatFails) {
  process.faults().fail(test::call::config_read, UCS_ERR_NO_MEMORY);
  EXPECT_EQ(made(api, {}).ec, errc::no_memory);
  process.faults().fail(test::call::config_read, UCS_ERR_INVALID_PARAM);
  const made result(api, {});
  EXPECT_EQ(result.ec, errc::bad_configuration);
  EXPECT_THAT(result.what, AllOf(HasSubstr("environment"), HasSubstr("UCX: Invalid parameter")));
  for (unsigned nth = 1; nth <= 4; ++nth) {
    test::fake_process& other = network.add_process("other" + std::to_string(nth));
    other.faults().fail(test::call::config_modify, UCS_ERR_NO_MEMORY, nth);
    EXPECT_EQ(made(other.api(), {}).ec, errc::no_memory) << nth;
  }
}

}  // namespace
}  // namespace ucx::detail
