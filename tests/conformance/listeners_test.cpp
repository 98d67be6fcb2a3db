// Listeners, by the rows B1 to B6, B25 and B30 of docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/handlers/fire.hpp"
#include "support/transports/connection_conformance.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/network.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST_P(ConformanceB, B1_B2_ListensOnOneAddressAndTellsItsPort) {
  const listener door(server_, any_port);
  EXPECT_EQ(door.address().host(), network_host());
  EXPECT_NE(door.address().port(), 0);
  if (goes_over_verbs()) return;
  const socket_address by_interface = interface_addresses("lo").front();
  const listener other(server_, by_interface);
  EXPECT_EQ(other.address().host(), by_interface.host());
  std::error_code ec;
  const endpoint elsewhere(client_, socket_address("127.0.0.2", door.address().port()), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused) << "only on that address";
}

TEST_P(ConformanceB, B3_B6_HandlersDecideAndKnowThePeer) {
  std::mutex mutex;
  std::vector<endpoint> accepted;
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    EXPECT_EQ(request.local().host(), network_host());
    accepted.emplace_back(server_, std::move(request));
  });
  endpoint connection(client_, door.address());
  {
    const std::lock_guard guard(mutex);
    ASSERT_EQ(accepted.size(), 1U);
    EXPECT_EQ(accepted[0].peer(), connection.local());
    EXPECT_EQ(accepted[0].local(), connection.peer());
  }
  EXPECT_EQ(connection.peer(), door.address());
  connection.close();
}

fire serve(listener& door, worker& on, std::vector<endpoint>& accepted, std::atomic<bool>& over) {
  try {
    for (;;) accepted.emplace_back(on, co_await door.accept());
  } catch (const ucx::error& failed) {
    over = failed.code() == errc::closed;
  }
}

TEST_P(ConformanceB, B3_PeersAreAwaited) {
  std::vector<endpoint> accepted;
  std::atomic<bool> over{false};
  listener_options options;
  options.manual_accept = true;
  listener door(server_, any_port, std::move(options));
  serve(door, server_, accepted, over);
  {
    endpoint first(client_, door.address());
    endpoint second(client_, door.address());
    EXPECT_EQ(door.connections(), 2U);
  }
  door.close();
  EXPECT_TRUE(until([&] { return over.load(); }));
  EXPECT_EQ(accepted.size(), 2U);
}

/// What a handler may return: it goes on when the flush that it awaits is done.
struct awaited_flush {
  request inner;
  bool await_ready() const noexcept { return inner.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    inner.then([coroutine](std::error_code) { coroutine.resume(); });
  }
  void await_resume() {}
};

TEST_P(ConformanceB, B4_AwaitableHandlersAreRunToTheirEnd) {
  std::mutex mutex;
  std::vector<endpoint> accepted;
  std::atomic<int> ended{0};
  struct told_flush : awaited_flush {
    std::atomic<int>* ended;
    void await_resume() { ++*ended; }
  };
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    accepted.emplace_back(server_, std::move(request));
    return told_flush{{accepted.back().start_flush()}, &ended};
  });
  endpoint connection(client_, door.address());
  EXPECT_TRUE(until([&] { return ended == 1; }));
  connection.close();
}

TEST_P(ConformanceB, B5_B15_RefusalsTellTheirReason) {
  const listener door(server_, any_port, [](connection_request request) {
    request.reject(errc::permission_denied, "members only");
  });
  try {
    const endpoint refused(client_, door.address());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::permission_denied);
    EXPECT_NE(std::string(failed.what()).find("members only"), std::string::npos) << failed.what();
  }
  std::mutex mutex;
  std::optional<connection_end> told;
  endpoint_options options;
  options.wait = connect_wait::none;
  options.events.on_refused = [&](const connection_end& refusal) {
    const std::lock_guard guard(mutex);
    told = refusal;
  };
  const endpoint refused(client_, door.address(), std::move(options));
  ASSERT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return told.has_value();
  }));
  EXPECT_EQ(told->reason, errc::permission_denied);
  EXPECT_EQ(told->error_message, "members only");
  const listener silent(server_, any_port, [](connection_request request) { request.reject(); });
  std::error_code ec;
  const endpoint plain(client_, silent.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST_P(ConformanceB, B25_AcceptedConnectionsInheritTheListenersTerms) {
  listener_options options;
  options.terms = connection_terms{.info = bytes("of the door")};
  const listener door(server_, any_port, std::move(options));
  const endpoint connection(client_, door.address());
  EXPECT_EQ(connection.peer_info(), bytes("of the door"));
  std::mutex mutex;
  std::optional<endpoint> accepted;
  const listener other(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    accepted.emplace(server_, std::move(request),
                     endpoint_options{.terms = connection_terms{.info = bytes("its own")}});
  });
  const endpoint own(client_, other.address());
  EXPECT_EQ(own.peer_info(), bytes("its own"));
}

TEST_P(ConformanceB, B25_B30_ListenersCountAndCloseTheirConnections) {
  for (const bool keeps : {true, false}) {
    listener door(server_, any_port);
    std::vector<endpoint> connections;
    for (int i = 0; i < 3; ++i) connections.emplace_back(client_, door.address());
    EXPECT_TRUE(until([&] { return door.connections() == 3; }));
    EXPECT_EQ(client_.connections(), 3U);
    if (keeps) {
      door.close();
      connections[0].flush();
      EXPECT_EQ(client_.connections(), 3U);
      continue;
    }
    close(door, close_mode::flush);
    EXPECT_TRUE(until([&] { return client_.connections() == 0; }));
  }
}

/// The server's mode is the parameter; its clients have a thread.
class ConformanceBServers : public testing::TestWithParam<progress_mode> {};

TEST_P(ConformanceBServers, B3_ServersOfEveryModeAccept) {
  const context server_context(loopback_tcp());
  const context client_context(loopback_tcp());
  const memory_region owned = memory_region::allocate(server_context, 5000, access::read_write);
  worker server(server_context, {.progress = GetParam()});
  std::mutex mutex;
  std::optional<endpoint> accepted;
  std::optional<connection_end> end;
  listener_options doors;
  doors.on_request = [&](connection_request request) {
    const std::lock_guard guard(mutex);
    accepted.emplace(server, std::move(request));
  };
  doors.events.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  std::optional<listener> door(std::in_place, server, any_port, std::move(doors));
  std::optional<event_loop> loop;
  if (GetParam() == progress_mode::external) loop.emplace(server);
  const auto until = [&](const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + 40s;
    while (!done()) {
      if (std::chrono::steady_clock::now() >= limit) return false;
      const bool active = GetParam() == progress_mode::caller && server.progress();
      if (!active) std::this_thread::sleep_for(100us);
    }
    return true;
  };

  const worker client(client_context, {.progress = progress_mode::sleeping_thread});
  endpoint connection(client, door->address(), {.wait = connect_wait::none});
  ASSERT_TRUE(until([&] { return connection.state() != connection_state::connecting; }));
  EXPECT_EQ(connection.state(), connection_state::active);
  {
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(accepted.has_value());
  }
  {
    remote_region region(connection, owned.descriptor(),
                         {.transfer_method = transfer_method::message});
    const std::vector<std::byte> from = pattern(5000, 1);
    std::vector<std::byte> into(5000);
    region.post_write_at(0, from);
    request flush = region.start_flush();
    ASSERT_TRUE(until([&] { return flush.done(); }));
    EXPECT_FALSE(flush.error());
    EXPECT_TRUE(holds_pattern(owned.bytes(), 1));
    request read = region.start_read_at(0, into);
    ASSERT_TRUE(until([&] { return read.done(); }));
    EXPECT_TRUE(holds_pattern(into, 1));
  }
  request closing = connection.start_close();
  ASSERT_TRUE(until([&] { return closing.done(); }));
  EXPECT_FALSE(closing.error());
  ASSERT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return end.has_value();
  }));
  EXPECT_EQ(end->reason, errc::closed_by_peer);
  loop.reset();
  accepted.reset();
  door.reset();
}

INSTANTIATE_TEST_SUITE_P(Modes, ConformanceBServers,
                         testing::Values(progress_mode::caller, progress_mode::polling_thread,
                                         progress_mode::sleeping_thread, progress_mode::external),
                         [](const auto& chosen) { return name_of(chosen.param); });

/// A server by plain UCX; where UCX speaks no IPv6 there, it says so.
TEST(ConformanceGServers, G9_ServersAreReachedByBothFamilies) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  std::error_code ec;
  server_options options{.bind = "127.0.0.1:0,[::1]:0"};
  options.context.transports = {"ucx"};
  server both(options, ec);
  if (ucx_version() < version_number{1, 14, 0}) {
    EXPECT_EQ(ec, errc::not_supported);
    return;
  }
  ASSERT_FALSE(ec) << ec.message();
  const std::vector<std::byte> memory = pattern(100'000);
  const publication p = both.publish("m", std::span(memory));
  const std::uint16_t port = both.address().socket.port();
  for (const char* const host : {"127.0.0.1", "::1"}) {
    client_options by;
    if (std::string(host) == "::1") by.context.configuration = {{"TCP_AF_PRIO", "inet6"}};
    client reader(url(host, port), by);
    std::vector<std::byte> into(memory.size());
    reader.open("m", access::read).read_at(0, into);
    EXPECT_TRUE(holds_pattern(into)) << host;
  }
}

}  // namespace
}  // namespace ucx::test
