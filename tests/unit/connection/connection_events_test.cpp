// What programs are told of connections, and what they can do then, over the simulation.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/address_peers.hpp"
#include "connection/connection_table.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ConnectionEvents, ListenerThatAcceptsByItselfAnswersItsPeers) {
  simulated_pair pair;
  const std::vector<std::byte> answer = pattern(100);
  std::optional<endpoint> kept;
  std::optional<connection_end> end;
  listener_options options;
  options.events.on_established = [&](endpoint peer, const connection_report& report) {
    EXPECT_EQ(peer.id(), report.id);
    EXPECT_EQ(peer.state(), connection_state::active);
    peer.post_send(7, answer, 1);
    kept.emplace(std::move(peer));
  };
  options.events.on_closed = [&](const connection_end& told) { end = told; };
  const listener door(pair.owner, any_port, std::move(options));
  endpoint connection(pair.reader, door.address());
  std::vector<std::byte> into(100);
  connection.receive(7, into);
  EXPECT_TRUE(holds_pattern(into));
  ASSERT_TRUE(kept);
  EXPECT_EQ(door.connections(), 1U);
  connection.close();
  EXPECT_TRUE(pair.network.run_until([&] { return end.has_value(); }));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->id, kept->id());
  EXPECT_EQ(kept->state(), connection_state::failed);
}

TEST(ConnectionEvents, HandleThatIsDroppedChangesNothing) {
  simulated_pair pair;
  int told = 0;
  listener_options options;
  options.events.on_established = [&](endpoint, const connection_report&) { ++told; };
  const listener door(pair.owner, any_port, std::move(options));
  endpoint connection(
      pair.reader, door.address(),
      {.events = {.on_established = [&](endpoint, const connection_report&) { ++told; }}});
  EXPECT_TRUE(pair.network.run_until([&] { return told == 2; }));
  pair.network.advance(1s);
  EXPECT_EQ(connection.state(), connection_state::active);
  EXPECT_EQ(door.connections(), 1U);
}

TEST(ConnectionEvents, HandleThatIsKeptKeepsConnectionAndWorker) {
  simulated_pair pair;
  std::optional<endpoint> kept;
  std::optional<worker> here(std::in_place, pair.reader_context);
  std::optional<endpoint> connection(
      std::in_place, *here, pair.owner.address(),
      endpoint_options{.events = {.on_established = [&](endpoint peer, const connection_report&) {
                         kept.emplace(std::move(peer));
                       }}});
  connection->wait_connected();
  for (int round = 0; round < 100 && !kept; ++round) here->progress();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->id(), connection->id());
  connection.reset();
  here.reset();
  EXPECT_EQ(kept->state(), connection_state::active);
  kept->flush();
  kept->close();
}

TEST(ConnectionEvents, OfARefusalNameWhatWasNotSent) {
  simulated_pair pair;
  std::optional<connection_end> told;
  endpoint connection(
      pair.reader, nobody,
      {.wait = connect_wait::none,
       .events = {.on_refused = [&](const connection_end& refusal) { told = refusal; }}});
  const std::vector<std::byte> bytes(10);
  connection.post_send(1, bytes, 42);
  EXPECT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return told.has_value();
  }));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::connection_refused);
  EXPECT_EQ(told->unsent, std::vector<std::uint64_t>{42});
}

TEST(ConnectionEvents, OfAWorkerAreReplaced) {
  simulated_pair pair;
  int first = 0;
  int second = 0;
  int ended = 0;
  const auto alive = std::make_shared<int>(0);
  pair.owner.set_connection_events(
      {.on_established = [&, alive](const endpoint&, const connection_report&) { ++first; }});
  endpoint one = pair.connect();
  one.wait_connected();
  EXPECT_TRUE(pair.network.run_until([&] { return first == 1; }));
  pair.owner.set_connection_events(
      {.on_established = [&](const endpoint&, const connection_report&) { ++second; },
       .on_closed = [&](const connection_end&) { ++ended; }});
  EXPECT_EQ(alive.use_count(), 1) << "those before are destroyed";
  endpoint another = pair.connect();
  another.wait_connected();
  EXPECT_TRUE(pair.network.run_until([&] { return second == 1; }));
  one.close();
  EXPECT_TRUE(pair.network.run_until([&] { return ended == 1; }));
  pair.owner.set_connection_events({});
  another.close();
  pair.network.advance(1s);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(ended, 1);
}

TEST(ConnectionEvents, OfAWorkerMayBeReplacedByOneOfThem) {
  simulated_pair pair;
  std::vector<int> told;
  const auto alive = std::make_shared<int>(0);
  pair.owner.set_connection_events({.on_established = [&, alive](const endpoint&,
                                                                 const connection_report&) {
    pair.owner.set_connection_events(
        {.on_established = [&](const endpoint&, const connection_report&) { told.push_back(2); }});
    EXPECT_EQ(alive.use_count(), 2) << "it runs still";
    told.push_back(1);
  }});
  const endpoint one = pair.connect();
  EXPECT_TRUE(pair.network.run_until([&] { return told.size() == 1; }));
  EXPECT_EQ(alive.use_count(), 1);
  const endpoint another = pair.connect();
  EXPECT_TRUE(pair.network.run_until([&] { return told.size() == 2; }));
  EXPECT_EQ(told, (std::vector{1, 2}));
}

TEST(ConnectionEvents, OfAWorkerAreDestroyedWhileTheyCount) {
  simulated_pair pair;
  const auto& told = detail::core_access::core(pair.owner)->connections().served().by_address();
  std::optional<bool> awaited;
  const auto on_end = [&](int*) { awaited = told.is_telling(); };
  pair.owner.set_connection_events(
      {.on_established = [&, last = std::shared_ptr<int>(nullptr, on_end)](
                             const endpoint&, const connection_report&) {
        EXPECT_EQ(last.use_count(), 1);
        pair.owner.set_connection_events({});
        EXPECT_FALSE(awaited) << "it runs still";
      }});
  const endpoint one = pair.connect();
  EXPECT_TRUE(pair.network.run_until([&] { return awaited.has_value(); }));
  EXPECT_TRUE(awaited.value_or(false)) << "set_connection_events() would have returned before";
}

// The handlers of before, which are options still for one version.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST(OldHandlers, AreCalledWhereTheEventsSayNothing) {
  int established = 0;
  int closed = 0;
  int refused = 0;
  simulated_pair_options options;
  options.owner_worker.on_established = [&](const endpoint& peer, const connection_report& report) {
    EXPECT_EQ(peer.id(), report.id);
    ++established;
  };
  options.owner_worker.on_closed = [&](const connection_end&) { ++closed; };
  simulated_pair pair(options);
  listener_options doors;
  doors.on_established = [&](const connection_report&) { ++established; };
  doors.on_closed = [&](const connection_end&) { ++closed; };
  const listener door(pair.owner, any_port, std::move(doors));
  const auto count = [&](const connection_report&) { ++established; };
  endpoint by_address = pair.connect({.on_established = count});
  endpoint by_socket(pair.reader, door.address(), {.on_established = count});
  const endpoint none(
      pair.reader, nobody,
      {.wait = connect_wait::none, .on_refused = [&](const connection_end&) { ++refused; }});
  const auto heard = [&] {
    pair.reader.progress();
    return established == 4 && refused == 1;
  };
  EXPECT_TRUE(pair.network.run_until(heard));
  by_address.close();
  by_socket.close();
  EXPECT_TRUE(pair.network.run_until([&] { return closed == 2; }));
}

TEST(OldHandlers, GiveWayToEvents) {
  int before = 0;
  int told = 0;
  simulated_pair_options options;
  options.owner_worker.on_established = [&](const endpoint&, const connection_report&) {
    ++before;
  };
  simulated_pair pair(options);
  pair.owner.set_connection_events(
      {.on_established = [&](const endpoint&, const connection_report&) { ++told; }});
  const endpoint connection = pair.connect(
      {.events = {.on_established = [&](const endpoint&, const connection_report&) { ++told; }},
       .on_established = [&](const connection_report&) { ++before; }});
  EXPECT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return told == 2;
  }));
  EXPECT_EQ(before, 0);
}

#pragma GCC diagnostic pop

}  // namespace
}  // namespace ucx::test
