// Contexts, configuration and diagnostics, by the rows A1 to A13 of
// docs/explanation/comparisons.md.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connection_conformance.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

TEST(ConformanceA, A1_UnknownKeysAndBadValuesAreErrors) {
  context_options options = loopback_tcp();
  options.configuration = {{"RNDV_THRESHOLD", "1"}};
  std::error_code ec;
  const context unknown(options, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  options.configuration = {{"RNDV_THRESH", "many"}};
  EXPECT_THROW(const context bad(options), ucx::error);
}

TEST(ConformanceA, A2_CallsWithoutTheirFeatureAreErrors) {
  context_options options = loopback_tcp();
  options.features = feature::am;
  const context plain(options);
  EXPECT_EQ(plain.features(), feature::am);
  std::error_code ec;
  const worker sleeps(plain, {.progress = progress_mode::sleeping_thread}, ec);
  EXPECT_EQ(ec, errc::feature_disabled) << "no wake-ups";
  connected_pair pair({.over = route::tcp_by_address});
  std::vector<std::byte> memory(10);
  const memory_region exposed(*pair.owner_context, std::span<std::byte>(memory), access::read);
  worker reader(plain);
  endpoint connection(reader, pair.address());
  connection.wait_connected();
  const remote_region by_rma(connection, exposed.descriptor(),
                             {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::feature_disabled) << "no one-sided access";
  options.features = feature::rma;
  const context one_sided(options);
  worker mute(one_sided);
  endpoint silent(mute, pair.address());
  silent.flush();  // UCX 1.13 ends a process whose peer leaves before their lanes stand
  const remote_region by_message(silent, exposed.descriptor(),
                                 {.transfer_method = transfer_method::message}, ec);
  EXPECT_EQ(ec, errc::feature_disabled) << "no messages";
  // The exceptions name it.
  const auto expect_named = [](const char* feature, auto call) {
    try {
      call();
      ADD_FAILURE() << feature;
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::feature_disabled);
      EXPECT_NE(std::string(failed.what()).find(feature), std::string::npos) << failed.what();
    }
  };
  expect_named("feature::wakeup",
               [&] { const worker driven(plain, {.progress = progress_mode::sleeping_thread}); });
  expect_named("feature::rma", [&] {
    const remote_region region(connection, exposed.descriptor(),
                               {.transfer_method = transfer_method::rma});
  });
  expect_named("feature::am", [&] {
    const remote_region region(silent, exposed.descriptor(),
                               {.transfer_method = transfer_method::message});
  });
  expect_named("feature::am", [&] {
    const endpoint strict(mute, pair.address(), {.terms = connection_terms{.require_rdma = true}});
  });
  expect_named("feature::am", [&] { const worker told(one_sided, {.terms = {.unique = true}}); });
  expect_named("feature::am", [&] { silent.send(1, memory); });
  expect_named("feature::am", [&] { silent.receive(1, memory); });
  expect_named("feature::am", [&] { silent.stream_send(memory); });
  expect_named("feature::am", [&] { silent.send(active_message{1}, memory); });
  expect_named("feature::am", [&] { mute.on_message(1, [](message) {}); });
}

TEST(ConformanceA, A2_CallsWithACodeAreClearToo) {
  connected_pair pair({.over = route::tcp_by_address});
  context_options options = loopback_tcp();
  options.features = feature::rma;
  const context one_sided(options);
  worker mute(one_sided);
  endpoint silent(mute, pair.address());
  silent.flush();  // UCX 1.13 ends a process whose peer leaves before their lanes stand
  std::vector<std::byte> memory(10);
  const std::vector<std::span<const std::byte>> runs{memory};
  const auto outcome = [](auto call) {
    std::error_code ec;
    call(ec);
    return ec;
  };
  using code = std::error_code&;
  const std::error_code lacking = errc::feature_disabled;
  EXPECT_EQ(outcome([&](code ec) { silent.send(1, memory, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.send(1, payload::parts(runs), {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.post_send(1, memory, 1, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.post_send(1, runs, 1, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.post_send(1, payload::parts(runs), 1, {}, ec); }),
            lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.send(active_message{1}, memory, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.post_send(active_message{1}, memory, 1, {}, ec); }),
            lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.stream_send(memory, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.stream_receive(memory, stream_amount::some, {}, ec); }),
            lacking);
  EXPECT_EQ(outcome([&](code ec) { silent.receive(1, memory, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) { mute.receive(1, memory, {}, ec); }), lacking);
  EXPECT_EQ(outcome([&](code ec) {
              mute.on_message(
                  1, [](message) {}, ec);
            }),
            lacking);
  EXPECT_EQ(silent.start_send(1, payload::parts(runs)).error(), lacking);
  EXPECT_EQ(silent.start_send(1, memory).error(), lacking);
  EXPECT_EQ(mute.start_receive(1, memory).error(), lacking);
  EXPECT_EQ(outcome([&](code ec) {
              const listener strict(mute, any_port_of_network(),
                                    {.terms = connection_terms{.transports = {"tcp"}}}, ec);
            }),
            lacking);
  // These have no error to tell.
  EXPECT_FALSE(mute.probe(1));
  EXPECT_FALSE(mute.take(1));
  EXPECT_FALSE(silent.probe(1));
  EXPECT_FALSE(silent.take(1));
  EXPECT_FALSE(mute.arm());
  EXPECT_EQ(mute.event_fd(), -1);
}

TEST(ConformanceA, A3_PrecedenceOverTheEnvironmentIsSelectable) {
  ::setenv("UCX_MAX_RNDV_RAILS", "3", 1);
  context_options options = loopback_tcp();
  options.configuration = {{"MAX_RNDV_RAILS", "1"}};
  const auto rails = [&] {
    const context made(options);
    for (const auto& [key, value] : made.configuration()) {
      if (key == "MAX_RNDV_RAILS") return value;
    }
    return std::string();
  };
  EXPECT_EQ(rails(), "1");
  options.configuration_precedence = precedence::environment;
  EXPECT_EQ(rails(), "3");
  options.configuration = {{"RNDV_THRESH", "many"}};
  std::error_code ec;
  const context checked(options, ec);
  EXPECT_EQ(ec, errc::bad_configuration) << "checked all the same";
  ::unsetenv("UCX_MAX_RNDV_RAILS");
}

/// Returns the value in force. Newer versions of UCX begin the keys of TCP by its name.
std::string value_of(const context& made, const std::string& wanted) {
  for (const auto& [key, value] : made.configuration()) {
    if (key == wanted || "TCP_" + key == wanted || key == "TCP_" + wanted) return value;
  }
  return "no such key";
}

/// Each default is there, and gives way to what the program or the environment says.
TEST(ConformanceA, A9_DefaultsAreOursUnlessSomebodySaysOtherwise) {
  struct setting {
    const char* key;
    const char* by_default;
    const char* another;
  };
  constexpr setting settings[] = {{"TCP_TX_SEG_SIZE", "1052672", "65536"},
                                  {"TCP_RX_SEG_SIZE", "1052672", "2097152"},
                                  {"TCP_CONN_NB", "y", "n"},
                                  {"CM_REUSEADDR", "y", "n"},
                                  {"ZCOPY_THRESH", "inf", "100000"},
                                  {"ADDRESS_VERSION", "v2", "v1"}};
  context_options options;
  options.transports = {"tcp"};
  options.devices = {"lo"};
  const context by_default(options);
  for (const setting& each : settings) {
    SCOPED_TRACE(each.key);
    const std::string variable = std::string("UCX_") + each.key;
    ASSERT_EQ(std::getenv(variable.c_str()), nullptr) << "these tests are of the defaults";
    EXPECT_EQ(value_of(by_default, each.key), each.by_default);
    options.configuration = {{each.key, each.another}};
    EXPECT_EQ(value_of(context(options), each.key), each.another);
    options.configuration.clear();
    ::setenv(variable.c_str(), each.another, 1);
    // UCX tells of no variable that a transport reads by itself.
    const std::string from_outside = value_of(context(options), each.key);
    EXPECT_TRUE(from_outside == each.another || from_outside == "no such key") << from_outside;
    ::unsetenv(variable.c_str());
  }
}

TEST(ConformanceA, A4_A6_ToldWhatIsInForce) {
  context_options options = loopback_tcp();
  options.name = "conformance";
  const context made(options);
  EXPECT_GT(made.configuration().size(), 20U);
  EXPECT_EQ(made.transports(), std::vector<std::string>{"tcp/lo"});
  const context_attributes told = made.attributes();
  EXPECT_EQ(told.name, "conformance");
  EXPECT_EQ(told.thread_mode, "multi");
  ASSERT_FALSE(told.memory.empty());
  EXPECT_EQ(told.memory.front(), memory_kind::host);
  EXPECT_EQ(told.supports_cuda(), std::find(told.memory.begin(), told.memory.end(),
                                            memory_kind::cuda) != told.memory.end());
  EXPECT_NE(made.description().find("tcp/lo"), std::string::npos);
}

TEST(ConformanceA, A5_WorkersTellOfThemselves) {
  const context made(loopback_tcp());
  const worker named(made, {.name = "seven of nine"});
  const worker_attributes told = named.attributes();
  EXPECT_EQ(told.name, "seven of nine");
  EXPECT_EQ(told.thread_mode, "serialized");
  EXPECT_GT(told.max_header_size, 1000U);
  EXPECT_EQ(told.address_size, named.address().native().size());
}

TEST(ConformanceA, A7_ContextsMadeElsewhereAreAdopted) {
  std::vector<std::byte> memory = pattern(20000);
  std::optional<context> made(loopback_tcp());
  {
    // Nobody else uses it here: as if another library had made it.
    const context borrowed = context::adopt(made->native_handle(), {});
    EXPECT_EQ(borrowed.transports(), made->transports());
    const memory_region exposed(borrowed, std::span<std::byte>(memory), access::read);
    const worker owner(borrowed, {.progress = progress_mode::sleeping_thread});
    const worker reader(*made);
    endpoint connection(reader, owner.address());
    remote_region region(connection, exposed.descriptor());
    std::vector<std::byte> into(20000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    EXPECT_LE(connection.report().segment_size, std::size_t{8} << 10U);
  }
  std::error_code ec;
  const context none = context::adopt(nullptr, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const worker no_worker = worker::adopt(*made, nullptr, ownership::take, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

/// UCX's own calls do with the handles what the library does.
TEST(ConformanceA, A8_HandlesOfUcxAreGivenOut) {
  connected_pair pair({.over = route::tcp_by_address});
  ucp_context_attr_t context_told = {};
  context_told.field_mask = UCP_ATTR_FIELD_NAME;
  ASSERT_EQ(ucp_context_query(pair.owner_context->native_handle(), &context_told), UCS_OK);
  EXPECT_EQ(pair.owner_context->attributes().name, context_told.name);
  ucp_worker_attr_t worker_told = {};
  worker_told.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  ASSERT_EQ(ucp_worker_query(pair.owner->native_handle(), &worker_told), UCS_OK);
  const std::span<const std::byte> address(reinterpret_cast<const std::byte*>(worker_told.address),
                                           worker_told.address_length);
  EXPECT_TRUE(std::ranges::equal(address, pair.address().native()));
  ucp_worker_release_address(pair.owner->native_handle(), worker_told.address);
  memory_region owned = pair.allocate(5000);
  fill_pattern(owned.bytes());
  ucp_ep* const connection = pair.connection->native_handle();
  ucp_rkey_h key = nullptr;
  ASSERT_EQ(ucp_ep_rkey_unpack(connection, owned.descriptor().remote_key.data(), &key), UCS_OK);
  std::vector<std::byte> into(owned.size());
  const ucp_request_param_t params = {};
  const ucs_status_ptr_t begun =
      ucp_get_nbx(connection, into.data(), into.size(), owned.descriptor().address, key, &params);
  if (UCS_PTR_IS_PTR(begun)) {
    EXPECT_TRUE(
        pair.drive_until([&] { return ucp_request_check_status(begun) != UCS_INPROGRESS; }));
    EXPECT_EQ(ucp_request_check_status(begun), UCS_OK);
    ucp_request_free(begun);
  } else {
    EXPECT_EQ(UCS_PTR_RAW_STATUS(begun), UCS_OK);
  }
  EXPECT_TRUE(holds_pattern(into));
  ucp_rkey_destroy(key);
  pair.connection->close();
  EXPECT_EQ(pair.connection->native_handle(), nullptr);
}

TEST(ConformanceA, A10_A11_LogsByLevelAndTracesOperations) {
  std::mutex mutex;
  std::string lines;
  context_options options = loopback_tcp();
  options.log.level = log_level::debug;
  options.log.sink = [&](log_level level, std::string_view line) {
    const std::lock_guard guard(mutex);
    lines.append(to_string(level)).append(" ").append(line).append("\n");
  };
  {
    const context made(options);
    std::vector<std::byte> memory(100);
    const memory_region exposed(made, std::span<std::byte>(memory), access::read);
    const worker owner(made, {.progress = progress_mode::sleeping_thread});
    const worker reader(made);
    endpoint connection(reader, owner.address());
    remote_region region(connection, exposed.descriptor());
    std::vector<std::byte> into(50);
    region.read_at(9, into);
  }
  const std::lock_guard guard(mutex);
  EXPECT_NE(lines.find("info context made: tcp/lo"), std::string::npos) << lines;
  EXPECT_NE(lines.find("50 bytes at offset 9"), std::string::npos) << lines;
  EXPECT_NE(lines.find("done"), std::string::npos) << lines;
}

TEST(ConformanceA, A10_TheEnvironmentSaysWhatIsLogged) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("ucxio-conformance-" + std::to_string(::getpid()) + ".log");
  ::setenv("UCXIO_LOG", ("info:" + path.string()).c_str(), 1);
  { const context made(loopback_tcp()); }
  ::unsetenv("UCXIO_LOG");
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  EXPECT_NE(text.find("info context made: tcp/lo"), std::string::npos) << text;
}

TEST(ConformanceA, A12_WhatIsMadeKeepsWhatItNeeds) {
  std::optional<context> made(loopback_tcp());
  std::optional<worker> owner(std::in_place, *made,
                              worker_options{.progress = progress_mode::sleeping_thread});
  std::optional<worker> reader(std::in_place, *made);
  const listener door(*owner, any_port);
  endpoint connection(*reader, door.address());
  made.reset();
  owner.reset();
  reader.reset();
  connection.flush();
  EXPECT_EQ(connection.state(), connection_state::active);
}

TEST(ConformanceA, A13_InterfacesHaveAddresses) {
  const auto found = interface_addresses("lo", 77);
  EXPECT_NE(std::find(found.begin(), found.end(), socket_address("127.0.0.1:77")), found.end());
  // The system's own list: an address without colons, its index, prefix, scope, flags, name.
  std::ifstream list("/proc/net/if_inet6");
  const std::string inet6(std::istreambuf_iterator<char>(list), {});
  const bool has_ipv6 = inet6.find("00000000000000000000000000000001 ") != std::string::npos;
  EXPECT_EQ(std::find(found.begin(), found.end(), socket_address("[::1]:77")) != found.end(),
            has_ipv6);
  std::error_code ec;
  EXPECT_TRUE(interface_addresses("no such interface", 0, ec).empty());
  EXPECT_EQ(ec, errc::host_not_found);
  EXPECT_THROW(interface_addresses("no such interface"), ucx::error);
}

TEST(ConformanceA, A4_RdmaMayBeRequired) {
  context_options options = loopback_tcp();
  options.require_rdma = true;
  std::error_code ec;
  const context none(options, ec);
  EXPECT_EQ(ec, errc::no_rdma);
}

}  // namespace
}  // namespace ucx::test
