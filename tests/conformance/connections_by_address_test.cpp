// Connections by worker address, over each transport: those of the rows B1 to B30 of
// docs/explanation/comparisons.md that need no socket address.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connection_conformance.hpp"
#include "support/transports/network.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class ConformanceBByAddress : public testing::TestWithParam<pair_options> {
 protected:
  static context_options options_of(route over) {
    context_options options = context_options_for(over);
    options.features = feature::rma | feature::am | feature::wakeup;
    return options;
  }
  bool until(const std::function<bool()>& done) {
    const auto end = clock::now() + patience(20s);
    while (!done()) {
      if (clock::now() >= end) return false;
      if (!client_.progress()) std::this_thread::sleep_for(100us);
    }
    return true;
  }
  /// The owner answers nothing any more.
  void silence() { loop_.reset(); }

  context server_context_{options_of(GetParam().over)};
  context client_context_{options_of(GetParam().over)};
  std::optional<worker> server_{std::in_place, server_context_,
                                patient({.progress = progress_mode::external,
                                         .name = "server",
                                         .terms = {.info = bytes("of the server")}})};
  const worker_address address_ = server_->address();
  std::optional<event_loop> loop_{std::in_place, *server_};
  worker client_{client_context_,
                 patient({.progress = GetParam().reader, .close_timeout = 3s, .name = "client"})};
};

TEST_P(ConformanceBByAddress, B10_B16_B18_B28_MeetWithoutIp) {
  std::mutex mutex;
  std::optional<connection_report> told;
  endpoint_options options;
  options.events.on_established = [&](const endpoint&, const connection_report& report) {
    const std::lock_guard guard(mutex);
    told = report;
  };
  endpoint connection(client_, address_, std::move(options));
  connection.wait_connected();
  EXPECT_EQ(connection.state(), connection_state::active);
  EXPECT_EQ(connection.peer_info(), bytes("of the server"));
  EXPECT_TRUE(connection.peer().empty());
  ASSERT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return told.has_value();
  }));
  EXPECT_EQ(told->id, connection.id());
  EXPECT_EQ(told->peer_name, "server");
  EXPECT_FALSE(told->transports.empty());
  EXPECT_EQ(told->watched, GetParam().over != route::shared_memory);
  EXPECT_EQ(told->native_rma, GetParam().over == route::shared_memory || goes_over_verbs());
}

TEST_P(ConformanceBByAddress, B14_LossIsTold) {
  std::mutex mutex;
  std::optional<connection_end> end;
  endpoint_options options;
  options.events.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  endpoint connection(client_, address_, std::move(options));
  connection.wait_connected();
  loop_.reset();
  server_.reset();
  ASSERT_TRUE(until([&] {
    const std::lock_guard guard(mutex);
    return end.has_value();
  }));
  EXPECT_EQ(end->reason, std::errc::connection_reset);
  EXPECT_EQ(connection.state(), connection_state::failed);
}

TEST_P(ConformanceBByAddress, B14_B16_TheOwnerOfTheAddressIsToldToo) {
  std::mutex mutex;
  std::optional<connection_report> came;
  std::optional<connection_end> left;
  worker_options options;
  options.progress = GetParam().reader;
  worker owner(server_context_, patient(options));
  connection_events events;
  events.on_established = [&](const endpoint&, const connection_report& report) {
    const std::lock_guard guard(mutex);
    came = report;
  };
  events.on_closed = [&](const connection_end& end) {
    const std::lock_guard guard(mutex);
    left = end;
  };
  owner.set_connection_events(std::move(events));
  std::optional<event_loop> loop;
  const worker_address where = owner.address();
  if (options.progress == progress_mode::external) loop.emplace(owner);
  const auto heard = [&](const auto& told) {
    return until([&] {
      if (!loop) owner.progress();
      const std::lock_guard guard(mutex);
      return told.has_value();
    });
  };
  endpoint connection(client_, where);
  ASSERT_TRUE(heard(came));
  EXPECT_EQ(came->peer_name, "client");
  EXPECT_EQ(owner.connections(), 1U);
  ASSERT_TRUE(until([&] { return connection.state() == connection_state::active; }));
  const request closing = connection.start_close();
  ASSERT_TRUE(heard(left));
  EXPECT_EQ(left->reason, errc::closed_by_peer);
  EXPECT_EQ(left->id, came->id);
  ASSERT_TRUE(until([&] { return closing.done(); }));
}

TEST_P(ConformanceBByAddress, B19_B20_B21_ClosesAsTheCallerChooses) {
  std::vector<std::byte> memory(std::size_t{8} << 20U);
  const memory_region exposed(server_context_, std::span<std::byte>(memory), access::read_write);
  const std::vector<std::byte> from = pattern(memory.size(), 1);
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    endpoint connection(client_, address_);
    connection.wait_connected();
    remote_region region(connection, exposed.descriptor(),
                         {.transfer_method = transfer_method::message});
    if (mode == close_mode::flush) region.post_write_at(0, from);
    request closing = connection.start_close(mode);
    closing.wait();
    EXPECT_EQ(connection.state(), connection_state::closed);
  }
  // The worker's default is 5 s.
  worker hasty(client_context_, patient({.progress = GetParam().reader, .close_timeout = 300ms}));
  endpoint last(hasty, address_);
  last.wait_connected();
  remote_region region(last, exposed.descriptor(), {.transfer_method = transfer_method::message});
  silence();
  EXPECT_TRUE(holds_pattern(memory, 1)) << "it was flushed";
  std::vector<std::byte> into(100);
  request read = region.start_read_at(0, into);
  const auto begin = clock::now();
  std::error_code ec;
  last.close(close_mode::flush, ec);
  EXPECT_LT(clock::now() - begin, 5s);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(last.state(), connection_state::closed);
  EXPECT_TRUE(read.done());
  EXPECT_TRUE(read.error());
}

TEST_P(ConformanceBByAddress, B23_OutstandingEndsWithConnection) {
  std::vector<std::byte> memory(100);
  const memory_region exposed(server_context_, std::span<std::byte>(memory), access::read);
  endpoint connection(client_, address_);
  connection.wait_connected();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  silence();
  std::vector<std::byte> into(10);
  request read = region.start_read_at(0, into);
  connection.close(close_mode::abort);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.error(), errc::canceled);
}

TEST_P(ConformanceBByAddress, B28_TransportsMayBeAskedFor) {
  const bool local = GetParam().over == route::shared_memory;
  const std::string network = goes_over_verbs() ? "rc" : "tcp";
  const std::string other = local ? network : "posix";
  endpoint unwanted(client_, address_, {.terms = connection_terms{.transports = {other}}});
  std::error_code ec;
  unwanted.wait_connected(ec);
  EXPECT_EQ(ec, errc::not_supported);
  if (!local && goes_over_verbs()) return;
  endpoint without(client_, address_, {.terms = connection_terms{.require_rdma = true}});
  without.wait_connected(ec);
  EXPECT_EQ(ec, errc::no_rdma);
}

TEST_P(ConformanceBByAddress, B29_DuplicatesAreFoundWhereAsked) {
  const connection_terms unique{.unique = true};
  endpoint first(client_, address_, {.terms = unique});
  first.wait_connected();
  endpoint again(client_, address_, {.terms = unique});
  std::error_code ec;
  again.wait_connected(ec);
  EXPECT_EQ(ec, errc::already_exists);
}

TEST_P(ConformanceBByAddress, B26_B27_ManagersKeepConnections) {
  connection_manager_options options;
  options.reconnect.first_delay = 1ms;
  options.reconnect.max_delay = 10ms;
  options.reconnect.max_attempts = 1000;
  connection_manager manager(client_, options);
  manager.add("server", address_);
  endpoint first = manager.wait_active("server");
  first.flush();
  const std::uint64_t id = first.id();
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::active, &managed_peer::state), 1);
  first.close(close_mode::abort);  // as if it were lost
  ASSERT_TRUE(until([&] {
    const endpoint next = manager.find("server");
    return next.state() == connection_state::active && next.id() != id;
  }));
  manager.wait_active("server").flush();
  manager.close();
  EXPECT_TRUE(manager.peers().empty());
}

TEST_P(ConformanceBByAddress, B27_ReconnectingMayBeRefused) {
  connection_manager_options options;
  options.reconnect.first_delay = 1ms;
  std::atomic<int> asked{0};
  std::atomic<bool> may{true};
  options.on_attempt = [&](const managed_peer&) {
    ++asked;
    return may.load();
  };
  connection_manager manager(client_, options);
  manager.add("server", address_);
  endpoint first = manager.wait_active("server");
  may = false;
  first.close(close_mode::abort);  // as if it were lost
  ASSERT_TRUE(until([&] { return manager.status("server")->state == connection_state::failed; }));
  EXPECT_EQ(asked, 2) << "once for each attempt";
  may = true;
  manager.reconnect("server");
  manager.wait_active("server").flush();
  EXPECT_EQ(asked, 3);
}

std::vector<pair_options> pairs_by_address() {
  std::vector<pair_options> all;
  for (const route over : {route::tcp_by_address, route::shared_memory}) {
    for (const progress_mode mode : {progress_mode::caller, progress_mode::polling_thread,
                                     progress_mode::sleeping_thread, progress_mode::external}) {
      all.push_back({over, progress_mode::external, mode, {}, {}});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceBByAddress, testing::ValuesIn(pairs_by_address()),
                         name_of_pair);

}  // namespace
}  // namespace ucx::test
