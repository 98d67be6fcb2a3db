// Connections, by the rows B1 to B30 of docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connection_conformance.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/network.hpp"
#include "ucx/access.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

TEST_P(ConformanceB, B7_ConnectsByName) {
  const listener door(server_, any_port);
  const std::string name = goes_over_verbs() ? network_host() : "localhost";
  const endpoint connection(client_, {name, door.address().port()});
  EXPECT_EQ(connection.peer(), door.address());
  std::error_code ec;
  const endpoint none(client_, {"no-such-host.invalid", 7}, {.connect_timeout = 3s}, ec);
  EXPECT_TRUE(ec == errc::host_not_found || ec == errc::timed_out) << ec.message();
}

TEST_P(ConformanceB, B8_SpeaksIpv6WhereUcxIsSetUpForIt) {
  if (ucx_version() < version_number{1, 14, 0}) {
    GTEST_SKIP() << "UCX " << to_string(ucx_version()) << " has no IPv6 on the loopback";
  }
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  context_options options = loopback_tcp();
  options.configuration = {{"TCP_AF_PRIO", "inet6"}};
  std::error_code ec;
  const context six(options, ec);
  ASSERT_FALSE(ec) << ec.message();
  const worker owner(six, {.progress = progress_mode::sleeping_thread});
  const worker reader(six, {.progress = GetParam()});
  const listener door(owner, socket_address("[::1]:0"), {}, ec);
  ASSERT_FALSE(ec) << ec.message();
  const endpoint connection(reader, door.address());
  EXPECT_TRUE(connection.peer().is_v6());
  const endpoint unprepared(client_, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

/// A port where nobody listens: who connects is refused, as long as this lives.
class refusing_port {
 public:
  refusing_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_in address = {};
    address.sin_family = AF_INET;
    ::socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const ::sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<::sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~refusing_port() { ::close(socket_); }
  refusing_port(const refusing_port&) = delete;
  refusing_port& operator=(const refusing_port&) = delete;

  socket_address address() const { return {network_host(), port_}; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

TEST_P(ConformanceB, B9_ConnectsFromAnAddress) {
  std::mutex mutex;
  std::optional<socket_address> from;
  std::optional<endpoint> accepted;
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    from = request.peer();
    accepted.emplace(server_, std::move(request));
  });
  const socket_address free = refusing_port().address();  // and nobody has it by now
  const endpoint connection(client_, door.address(), {.local = free});
  EXPECT_EQ(connection.local(), free);
  {
    const std::lock_guard guard(mutex);
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(*from, free);
  }
  // 127.0.0.5 can be bound, but no interface shows it, without which UCX finds no way.
  for (const char* foreign : {"198.51.100.1:0", "127.0.0.5:0", "[::1]:0"}) {
    std::error_code ec;
    const endpoint none(client_, door.address(), {.local = socket_address(foreign)}, ec);
    EXPECT_EQ(ec, errc::bad_address) << foreign;
  }
}

TEST_P(ConformanceB, B10_B11_ConnectsByWorkerAddress) {
  const std::vector<std::byte> wire = server_.address().encode();
  endpoint connection(client_, worker_address::decode(wire));
  connection.wait_connected();
  EXPECT_EQ(connection.state(), connection_state::active);
  const std::unordered_set<worker_address> set{server_.address(), worker_address::decode(wire)};
  EXPECT_EQ(set.size(), 1U);
}

TEST_P(ConformanceB, B12_ConnectsToItself) {
  endpoint connection(client_, client_.address());
  connection.wait_connected();
  EXPECT_EQ(connection.report().peer_name, "client");
  const std::vector<std::byte> said = pattern(70'000, 1);
  std::vector<std::byte> heard(said.size());
  request hearing = client_.start_receive(7, heard);
  connection.send(7, said);
  hearing.wait();
  EXPECT_TRUE(holds_pattern(heard, 1));
  memory_region own = memory_region::allocate(client_context_, said.size(), access::read_write);
  remote_region region(connection, own.descriptor());
  region.write_at(100, std::span(said).first(5000));
  region.flush();
  EXPECT_TRUE(holds_pattern(own.bytes().subspan(100, 5000), 1));
  own.bytes()[60'000] = std::byte{5};
  region.read_at(60'000, std::span(heard).first(1));
  EXPECT_EQ(heard[0], std::byte{5});
  connection.close();
  EXPECT_EQ(connection.state(), connection_state::closed);
}

TEST_P(ConformanceB, B13_ErrorHandlingMayBeOff) {
  context_options local = context_options_for(route::shared_memory);
  local.features = feature::rma | feature::am | feature::wakeup;
  const context shared(local);
  std::optional<worker> owner(std::in_place, shared,
                              worker_options{.progress = progress_mode::external});
  std::optional<event_loop> loop(std::in_place, *owner);
  std::vector<std::byte> memory(100);
  const memory_region exposed(shared, std::span<std::byte>(memory), access::read);
  worker reader(shared, {.progress = GetParam(), .heartbeat_timeout = 60s});
  listener door(server_, any_port);
  const endpoint watching(client_, door.address());
  std::mutex mutex;
  std::optional<connection_end> end;
  endpoint_options options;
  options.error_handling = error_handling_mode::none;
  options.watched_by = &watching;
  options.events.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  endpoint fast(reader, owner->address(), std::move(options));
  fast.wait_connected();
  EXPECT_FALSE(fast.report().watched);
  remote_region region(fast, exposed.descriptor(), {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  loop.reset();
  request read = region.start_read_at(0, into);
  const std::vector<std::byte> announced = pattern(1U << 20U);
  request send = fast.start_send(1, announced);
  std::vector<std::byte> place(100);
  request receive = fast.start_receive(2, place);
  EXPECT_FALSE(read.wait_for(20ms)) << "the owner is silent";
  // The process of the peer leaves, as far as the watching connection can see.
  close(door, close_mode::abort);
  const auto begin = clock::now();
  EXPECT_TRUE(until([&] {
    reader.progress();
    const std::lock_guard guard(mutex);
    return end.has_value();
  }));
  // docs/reference/connections.md says 2 s; a slow machine with a sanitizer takes longer now and
  // then. By itself the reader would tell after a minute.
  EXPECT_LT(clock::now() - begin, 30s);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->reason, errc::connection_reset);
  EXPECT_EQ(fast.status(), errc::connection_reset);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.error(), errc::connection_reset) << "told by the other connection";
  for (request* const each : {&send, &receive}) {
    EXPECT_TRUE(until([&] {
      reader.progress();
      return each->done();
    }));
    EXPECT_EQ(each->error(), errc::connection_reset) << each->description();
  }
}

TEST_P(ConformanceB, B14_B16_EndsAreToldWithTheirReason) {
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    std::mutex mutex;
    std::optional<connection_end> end;
    listener door(server_, any_port);
    endpoint_options options;
    options.events.on_closed = [&](const connection_end& told) {
      const std::lock_guard guard(mutex);
      end = told;
    };
    endpoint connection(client_, door.address(), std::move(options));
    EXPECT_EQ(connection.state(), connection_state::active);
    EXPECT_FALSE(connection.status());
    close(door, mode);
    ASSERT_TRUE(until([&] {
      const std::lock_guard guard(mutex);
      return end.has_value();
    }));
    EXPECT_EQ(end->reason,
              mode == close_mode::flush ? errc::closed_by_peer : errc::connection_reset);
    EXPECT_EQ(end->id, connection.id());
    EXPECT_EQ(connection.state(), connection_state::failed);
    EXPECT_EQ(connection.status(), end->reason);
  }
}

TEST_P(ConformanceB, B17_ConnectingHasADeadline) {
  const context silent_context(loopback_tcp());
  const worker silent(silent_context);  // nobody drives it
  const listener door(silent, any_port);
  const auto begin = clock::now();
  std::error_code ec;
  worker patient(client_context_, {.progress = GetParam(), .connect_timeout = 60s});
  const endpoint none(patient, door.address(), {.connect_timeout = 100ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(clock::now() - begin, 20s);
  const endpoint nobody(client_, socket_address(network_host(), 1), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST_P(ConformanceB, B18_PeersTellOfThemselves) {
  std::mutex mutex;
  std::vector<std::byte> told;
  listener_options doors;
  doors.events.on_established = [&](const endpoint&, const connection_report& report) {
    const std::lock_guard guard(mutex);
    told = report.peer_info;
  };
  const listener door(server_, any_port, std::move(doors));
  const endpoint connection(client_, door.address());
  EXPECT_EQ(connection.peer_info(), bytes("of the server"));
  EXPECT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return told == bytes("of the client");
  }));
}

TEST_P(ConformanceB, B19_B20_B21_ClosesAsTheCallerChooses) {
  std::vector<std::byte> memory(std::size_t{8} << 20U);
  const memory_region exposed(server_context_, std::span<std::byte>(memory), access::read_write);
  const std::vector<std::byte> from = pattern(memory.size(), 1);
  const listener door(server_, any_port);
  endpoint first(client_, door.address());
  remote_region region(first, exposed.descriptor(), {.transfer_method = transfer_method::message});
  region.post_write_at(0, from);
  std::atomic<int> outcome{-1};
  request closing = first.start_close();
  closing.then([&](std::error_code ec) { outcome = ec.value(); });
  EXPECT_TRUE(until([&] { return outcome >= 0; }));
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(first.state(), connection_state::closed);
  // Asked of the worker that wrote it: so that what it wrote is seen by this thread, too.
  EXPECT_TRUE(until([&] { return server_.connections() == 0; }));
  EXPECT_TRUE(holds_pattern(memory, 1)) << "it was flushed";
  endpoint second(client_, door.address());
  request aborting = second.start_close(close_mode::abort);
  aborting.wait();
  EXPECT_EQ(second.state(), connection_state::closed);
  endpoint third(client_, door.address());
  third.close();
  third.close(close_mode::abort);  // a second one does nothing
  EXPECT_EQ(third.status(), errc::closed);
}

// The worker's default is 5 s.
TEST_P(ConformanceB, B20_CloseIsBoundedWhereThePeerIsSilent) {
  const context silent_context(loopback_tcp());
  std::vector<std::byte> memory(100);
  const memory_region exposed(silent_context, std::span<std::byte>(memory), access::read_write);
  worker hasty(client_context_, {.progress = GetParam(), .close_timeout = 300ms});
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    // Another one each time: UCX 1.13.1 may end a process that hears at once of a connection's end
    // and of the next connection of that peer (tcp_iface.c, UCT_TCP_EP_CONN_STATE_CLOSED).
    worker silent(silent_context, {.progress = progress_mode::external});
    std::optional<event_loop> loop(std::in_place, silent);
    endpoint connection(hasty, silent.address());
    connection.wait_connected();
    remote_region region(connection, exposed.descriptor(),
                         {.transfer_method = transfer_method::message});
    loop.reset();
    const std::vector<std::byte> from = pattern(100);
    request write = region.start_write_at(0, from);
    std::vector<std::byte> into(100);
    request read = region.start_read_at(0, into);
    const auto begin = clock::now();
    std::error_code ec;
    connection.close(mode, ec);
    EXPECT_LT(clock::now() - begin, 5s);
    if (mode == close_mode::flush) {
      EXPECT_EQ(ec, errc::timed_out) << "of what was outstanding nobody knows";
    } else {
      EXPECT_FALSE(ec) << ec.message();
    }
    EXPECT_EQ(connection.state(), connection_state::closed);
    EXPECT_TRUE(read.done());
    EXPECT_TRUE(read.error()) << "its bytes never came";
  }
}

TEST_P(ConformanceB, B22_OrderlyEndIsNoLoss) {
  listener door(server_, any_port);
  const endpoint connection(client_, door.address());
  close(door, close_mode::flush);
  ASSERT_TRUE(until([&] { return connection.state() == connection_state::failed; }));
  EXPECT_EQ(connection.status(), errc::closed_by_peer);
  EXPECT_EQ(connection.status(), std::errc::connection_reset) << "to those who do not care";
}

TEST_P(ConformanceB, B22_ClosesItselfBehindItsNthCompletion) {
  std::mutex mutex;
  std::optional<endpoint> there;
  const listener door(server_, any_port, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    there.emplace(server_, std::move(request));
  });
  endpoint connection(client_, door.address());
  std::vector<std::vector<std::byte>> into(3, std::vector<std::byte>(100));
  std::atomic<int> left{3};
  std::atomic<int> outcome{-1};
  request closing;
  std::vector<request> receives;
  for (std::uint64_t i = 0; i < into.size(); ++i) {
    receives.push_back(connection.start_receive(i, into[i]));
    receives.back().then([&](std::error_code ec) {
      EXPECT_FALSE(ec);
      if (--left > 0) return;
      closing = connection.start_close();  // may be called here: nothing waits
      closing.then([&](std::error_code how) { outcome = how.value(); });
    });
  }
  {
    const std::lock_guard guard(mutex);
    ASSERT_TRUE(there.has_value());
    for (std::uint64_t i = 0; i < into.size(); ++i) {
      EXPECT_EQ(connection.state(), connection_state::active) << i;
      there->send(i, pattern(100, i), {.memory = send_memory::copied});
    }
  }
  EXPECT_TRUE(until([&] { return outcome >= 0; }));
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(connection.state(), connection_state::closed);
  for (std::uint64_t i = 0; i < into.size(); ++i) EXPECT_TRUE(holds_pattern(into[i], i));
}

TEST_P(ConformanceB, B23_OutstandingEndsWithConnection) {
  const context silent_context(loopback_tcp());
  std::vector<std::byte> memory(100);
  const memory_region exposed(silent_context, std::span<std::byte>(memory), access::read);
  std::optional<worker> silent(std::in_place, silent_context,
                               worker_options{.progress = progress_mode::external});
  std::optional<event_loop> loop(std::in_place, *silent);
  endpoint connection(client_, silent->address());
  connection.wait_connected();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  loop.reset();
  std::vector<std::byte> into(10);
  request read = region.start_read_at(0, into);
  connection.close(close_mode::abort);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.error(), errc::canceled);
}

TEST_P(ConformanceB, B26_B27_ManagersKeepConnections) {
  std::optional<listener> door(std::in_place, server_, any_port);
  const socket_address where = door->address();
  connection_manager_options options;
  options.reconnect.first_delay = 10ms;
  options.reconnect.max_attempts = 1000;
  std::atomic<int> asked{0};
  options.on_attempt = [&](const managed_peer&) {
    ++asked;
    return true;
  };
  connection_manager manager(client_, options);
  manager.add("by address", where);
  manager.add("by name", {network_host(), where.port()});
  const std::uint64_t first = manager.wait_active("by address").id();
  manager.wait_active("by name").flush();
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::active, &managed_peer::state), 2);
  close(*door, close_mode::flush);
  door.reset();
  EXPECT_TRUE(until([&] {
    return std::ranges::count(manager.peers(), connection_state::active, &managed_peer::state) == 0;
  }));
  std::error_code ec;
  for (int i = 0; i < 2000 && !door; ++i) {  // the port is free again when UCX has let go of it
    door.emplace(server_, where, listener_options(), ec);
    if (ec) door.reset();
    if (ec) std::this_thread::sleep_for(10ms);
  }
  ASSERT_TRUE(door) << ec.message();
  EXPECT_NE(manager.wait_active("by address").id(), first);
  manager.wait_active("by name").flush();
  EXPECT_GE(asked, 2);
  manager.close();
  EXPECT_TRUE(manager.peers().empty());
}

TEST_P(ConformanceB, B27_ReconnectingMayBeRefused) {
  const listener door(server_, any_port);
  connection_manager_options options;
  options.reconnect.first_delay = 1ms;
  std::atomic<int> asked{0};
  std::atomic<bool> may{true};
  options.on_attempt = [&](const managed_peer&) {
    ++asked;
    return may.load();
  };
  connection_manager manager(client_, options);
  manager.add("server", door.address());
  endpoint first = manager.wait_active("server");
  may = false;
  first.close(close_mode::abort);  // as if it were lost
  ASSERT_TRUE(until([&] { return manager.status("server")->state == connection_state::failed; }));
  EXPECT_EQ(asked, 2) << "once for each attempt";
  EXPECT_TRUE(manager.status("server")->failure);
  std::error_code ec;
  manager.wait_active("server", {.timeout = 30s}, ec);
  EXPECT_EQ(ec, manager.status("server")->failure) << "at once, and nothing is tried";
  EXPECT_EQ(asked, 2);
  may = true;
  manager.reconnect("server");
  manager.wait_active("server").flush();
  EXPECT_EQ(asked, 3);
}

TEST_P(ConformanceB, B27_ReconnectingIsBounded) {
  connection_manager_options options;
  options.reconnect.first_delay = 1ms;
  options.reconnect.max_delay = 2ms;
  options.reconnect.max_attempts = 3;
  std::atomic<unsigned> asked{0};
  options.on_attempt = [&](const managed_peer&) { return ++asked > 0; };
  connection_manager manager(client_, options);
  const refusing_port held;
  manager.add("nobody", held.address());
  std::error_code ec;
  manager.wait_active("nobody", {.timeout = 30s}, ec);
  EXPECT_EQ(ec, errc::connection_refused) << ec.message();
  const managed_peer given_up = manager.status("nobody").value_or(managed_peer());
  EXPECT_EQ(given_up.state, connection_state::failed);
  EXPECT_EQ(given_up.attempts, 1 + options.reconnect.max_attempts);
  EXPECT_EQ(asked, 1 + options.reconnect.max_attempts);
  EXPECT_FALSE(until([&] { return asked > 1 + options.reconnect.max_attempts; }, 100ms));
}

TEST_P(ConformanceB, B27_ReconnectingIsBoundedBehindALoss) {
  std::mutex mutex;
  std::optional<endpoint> accepted;
  std::atomic<unsigned> came{0};
  const listener door(server_, any_port, [&](connection_request request) {
    if (++came > 1) return request.reject();
    const std::lock_guard guard(mutex);
    accepted.emplace(server_, std::move(request));
  });
  connection_manager_options options;
  options.reconnect.first_delay = 1ms;
  options.reconnect.max_delay = 2ms;
  options.reconnect.max_attempts = 3;
  connection_manager manager(client_, options);
  manager.add("server", door.address());
  manager.wait_active("server").close(close_mode::abort);  // as if it were lost
  ASSERT_TRUE(until([&] { return manager.status("server")->state == connection_state::failed; }));
  EXPECT_EQ(came, 1 + options.reconnect.max_attempts);
  EXPECT_FALSE(until([&] { return came > 1 + options.reconnect.max_attempts; }, 100ms));
}

TEST_P(ConformanceB, G4_ErrorsHaveTheStatusOfUcx) {
  const refusing_port held;
  try {
    const endpoint refused(client_, held.address());
    FAIL() << "it was connected";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_refused);
    ASSERT_TRUE(failed.ucx_status());
    EXPECT_LT(*failed.ucx_status(), 0);
    EXPECT_TRUE(ucx_status_name(*failed.ucx_status()).starts_with("UCS_ERR_"));
  }
}

TEST_P(ConformanceB, B28_ConnectionsReportWhatTheyCanDo) {
  const bool verbs = goes_over_verbs();
  const listener door(server_, any_port);
  const endpoint connection(client_, door.address());
  const connection_report report = connection.report();
  EXPECT_EQ(report.features, feature::rma | feature::am | feature::wakeup);
  ASSERT_FALSE(report.transports.empty());
  EXPECT_TRUE(report.transports[0].starts_with(verbs ? "rc_" : "tcp/lo")) << report.transports[0];
  if (!verbs) {
    EXPECT_EQ(report.transports.size(), 1U);
    EXPECT_GE(report.segment_size, std::size_t{1} << 20U);
  }
  EXPECT_EQ(report.max_header_size, connection.max_header_size());
  EXPECT_GT(report.max_header_size, 1000U);
  EXPECT_EQ(report.zero_copy, verbs);
  EXPECT_EQ(report.native_rma, verbs);
  EXPECT_TRUE(report.watched);
  EXPECT_EQ(report.peer_name, "server");
  std::error_code ec;
  const endpoint real(client_, door.address(), {.terms = connection_terms{.require_rdma = true}},
                      ec);
  EXPECT_EQ(ec, verbs ? std::error_code() : make_error_code(errc::no_rdma));
  const endpoint tcp(client_, door.address(), {.terms = connection_terms{.transports = {"tcp"}}},
                     ec);
  EXPECT_EQ(ec, verbs ? make_error_code(errc::not_supported) : std::error_code());
}

TEST_P(ConformanceB, B28_SendsTakeWhatTheReportSays) {
  const listener door(server_, any_port);
  endpoint connection(client_, door.address());
  const connection_report report = connection.report();
  const std::vector<std::byte> longest(report.max_header_size + 1);
  std::error_code ec;
  connection.send(active_message{1, std::span(longest).first(report.max_header_size)}, {}, {}, ec);
  EXPECT_FALSE(ec);
  connection.send(active_message{1, longest}, {}, {}, ec);
  EXPECT_EQ(ec, errc::header_too_long);
  // Over a network; nobody has asked for it, and nobody will.
  EXPECT_EQ(report.max_eager_size, std::size_t{256} << 10U);
  const std::vector<std::byte> whole(report.max_eager_size);
  connection.send(1, whole);
  const std::vector<std::byte> longer(report.max_eager_size + 1);
  connection.send(1, longer, {.timeout = 200ms}, ec);
  EXPECT_EQ(ec, errc::timed_out) << "announced, and waits for who asks";
}

// UCX 1.13 ends a process that gets a longer segment than its own: each side sends what both can
// have.
TEST_P(ConformanceB, B28_SidesMayHaveSegmentsOfDifferentLength) {
  for (const char* segment : {"8k", "64k", "4m"}) {
    context_options options = loopback_tcp();
    options.configuration = {{"TCP_TX_SEG_SIZE", segment}, {"TCP_RX_SEG_SIZE", segment}};
    const context other(options);
    worker server(other, {.progress = progress_mode::sleeping_thread});
    const std::size_t size = std::size_t{5} << 20U;
    const memory_region owned = memory_region::allocate(other, size, access::read_write);
    const listener door(server, any_port);
    endpoint connection(client_, door.address());
    const std::vector<std::byte> bytes = pattern(size, 1);
    std::vector<std::byte> into(size);
    remote_region region(connection, owned.descriptor(),
                         {.transfer_method = transfer_method::message});
    region.write_at(0, bytes);
    region.flush();
    EXPECT_TRUE(holds_pattern(owned.bytes(), 1));
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into, 1));
    for (const std::size_t each : {std::size_t{50'000}, std::size_t{200'000}, size}) {
      const std::vector<std::byte> sent = pattern(each, each);
      std::vector<std::byte> there(each);
      request receive = server.start_receive(each, there);
      request send = connection.start_send(each, sent);
      EXPECT_TRUE(until([&] { return send.done() && receive.done(); }));
      EXPECT_FALSE(receive.error()) << receive.error().message();
      EXPECT_TRUE(holds_pattern(there, each));
    }
    std::vector<write_piece> writes;
    std::vector<read_piece> reads;
    for (std::size_t at = 0; at < size / 2; at += 15'000) {
      writes.push_back({at, std::span(bytes).subspan(size / 2 + at, 10'000)});
      reads.push_back({at, std::span(into).subspan(at, 10'000)});
    }
    region.write_batch(writes);
    region.flush();
    region.read_batch(reads);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      ASSERT_TRUE(std::ranges::equal(reads[i].into, writes[i].from)) << i;
    }
    connection.close();
  }
}

TEST_P(ConformanceB, B29_DuplicatesAreFoundWhereAsked) {
  const connection_terms unique{.unique = true};
  const listener door(server_, any_port);
  const listener other(server_, any_port);
  endpoint first(client_, door.address(), {.terms = unique});
  std::error_code ec;
  const endpoint again(client_, door.address(), {.terms = unique}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  const endpoint elsewhere(client_, other.address(), {.terms = unique}, ec);
  EXPECT_EQ(ec, errc::already_exists) << "the same worker by another door";
  const endpoint plain(client_, door.address(), {}, ec);
  EXPECT_FALSE(ec);
}

INSTANTIATE_TEST_SUITE_P(Modes, ConformanceB,
                         testing::Values(progress_mode::caller, progress_mode::polling_thread,
                                         progress_mode::sleeping_thread, progress_mode::external),
                         [](const testing::TestParamInfo<progress_mode>& instance) {
                           return name_of(instance.param);
                         });

}  // namespace
}  // namespace ucx::test
