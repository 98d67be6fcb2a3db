// What is told of connections that end, or never come to be: on either side.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/listener.hpp"
#include "ucx/payload.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ConnectionEnd, NamesThePostsThatHadNotEnded) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::optional<connection_end> told;
  endpoint connection(pair.reader, door.address(),
                      {.events = {.on_closed = [&](const connection_end& end) { told = end; }}});
  std::vector<std::pair<std::uint64_t, std::error_code>> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) { ended.emplace_back(key, how); };
  connection.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> large = pattern(1U << 20U);  // waits for a receive
  std::error_code ec;
  connection.post_send(1, pattern(10), 31, {}, ec);
  connection.post_send(2, large, 33, {}, ec);
  connection.post_send(3, large, 32, {}, ec);
  EXPECT_FALSE(ec);
  request with_handle = connection.start_send(4, large);
  pair.network.advance(1ms);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0], std::pair(std::uint64_t{31}, std::error_code()));
  pair.owner_process.kill();
  pair.network.run_until([&] {
    pair.reader.progress();
    return told.has_value();
  });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::connection_reset);
  EXPECT_EQ(told->unsent, (std::vector<std::uint64_t>{33, 32}));
  for (int round = 0; round < 10; ++round) pair.reader.progress();
  ASSERT_EQ(ended.size(), 3U);  // each once
  EXPECT_EQ(ended[1].second, errc::connection_reset);
  EXPECT_EQ(ended[2].second, errc::connection_reset);
  EXPECT_EQ(with_handle.error(), errc::connection_reset);
}

/// Counts what the owner of a worker's address is told of those that connect by it.
struct told_by_address {
  connection_events handlers() {
    connection_events events;
    events.on_established = [this](endpoint peer, const connection_report& report) {
      peers.push_back(std::move(peer));
      reports.push_back(report);
    };
    events.on_refused = [this](const connection_end& refusal) { refusals.push_back(refusal); };
    events.on_closed = [this](const connection_end& end) { ends.push_back(end); };
    return events;
  }

  std::vector<endpoint> peers;
  std::vector<connection_report> reports;
  std::vector<connection_end> refusals;
  std::vector<connection_end> ends;
};

TEST(ConnectionEnd, OfAPeerByAddressIsToldToTheAddresssOwner) {
  for (const auto mode : {std::optional(close_mode::flush), std::optional(close_mode::abort),
                          std::optional<close_mode>()}) {
    told_by_address told;
    simulated_pair_options options;
    options.owner_worker.name = "owner";
    options.reader_worker.name = "reader";
    simulated_pair pair(options);
    pair.owner.set_connection_events(told.handlers());
    std::optional<endpoint> connection(pair.connect());
    connection->wait_connected();
    pair.network.advance(1ms);
    ASSERT_EQ(told.reports.size(), 1U);
    EXPECT_EQ(told.reports[0].peer_name, "reader");
    EXPECT_TRUE(told.reports[0].peer.empty());
    EXPECT_EQ(told.peers[0].id(), told.reports[0].id);
    EXPECT_EQ(told.peers[0].state(), connection_state::active);
    std::error_code ec;
    told.peers[0].post_send(1, pattern(1U << 20U), 77, {}, ec);  // nobody receives it
    EXPECT_FALSE(ec);
    pair.network.advance(1ms);
    EXPECT_EQ(pair.owner.connections(), 1U);
    EXPECT_TRUE(told.ends.empty());
    if (mode) {
      connection->close(*mode);
    } else {
      pair.reader_process.kill();
    }
    pair.network.advance(2s);
    EXPECT_EQ(pair.owner.connections(), 0U);
    ASSERT_EQ(told.ends.size(), 1U);
    EXPECT_EQ(told.ends[0].id, told.reports[0].id);
    EXPECT_EQ(told.ends[0].reason,
              mode == close_mode::flush ? errc::closed_by_peer : errc::connection_reset);
    EXPECT_EQ(told.ends[0].unsent, std::vector<std::uint64_t>{77});
    EXPECT_TRUE(told.refusals.empty());
    told.peers.clear();
  }
}

TEST(ConnectionEnd, OnThisSideIsNotToldToTheAddresssOwner) {
  told_by_address told;
  simulated_pair pair;
  pair.owner.set_connection_events(told.handlers());
  const endpoint connection = pair.connect();
  pair.network.advance(1ms);
  ASSERT_EQ(told.peers.size(), 1U);
  told.peers[0].close();
  told.peers.clear();
  pair.network.advance(2s);
  EXPECT_EQ(pair.owner.connections(), 0U);
  EXPECT_TRUE(told.ends.empty());
  EXPECT_EQ(connection.status(), errc::closed_by_peer);
}

TEST(ConnectionEnd, RefusedPeersByAddressAreToldToTheAddresssOwner) {
  told_by_address told;
  simulated_pair_options options;
  options.owner_worker.terms.require_rdma = true;
  simulated_pair pair(options);
  pair.owner.set_connection_events(told.handlers());
  endpoint connection = pair.connect();
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::no_rdma);
  pair.network.advance(2s);
  ASSERT_EQ(told.refusals.size(), 1U);
  EXPECT_EQ(told.refusals[0].reason, errc::no_rdma);
  EXPECT_TRUE(told.reports.empty());
  EXPECT_TRUE(told.ends.empty());
}

// A connection over shared memory, whose peer's death UCX does not notice, and one that it watches.
TEST(ConnectionEnd, OfTheCompanionIsThatOfWhatItWatches) {
  told_by_address told;
  simulated_pair pair;
  pair.owner.set_connection_events(told.handlers());
  const endpoint fast = pair.connect({.error_handling = error_handling_mode::none});
  const endpoint beside = pair.connect();
  pair.network.advance(1ms);
  ASSERT_EQ(told.peers.size(), 2U);
  std::error_code ec;
  told.peers[0].watch_by(told.peers[1], ec);
  EXPECT_FALSE(ec);
  told.peers.clear();  // the worker has them
  pair.network.advance(1ms);
  EXPECT_EQ(pair.owner.connections(), 2U);
  pair.reader_process.kill();
  pair.network.advance(2s);
  EXPECT_EQ(pair.owner.connections(), 0U);
  EXPECT_EQ(told.ends.size(), 2U);
}

TEST(ConnectionEnd, OnlyWhatIsOpenWatchesOrIsWatched) {
  simulated_pair pair;
  endpoint open = pair.connect();
  endpoint closed = pair.connect();
  endpoint gone(std::move(closed));
  std::error_code ec;
  open.watch_by(closed, ec);  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(closed.watch_by(open), ucx::error);
  gone.close();
  gone.watch_by(open, ec);
  EXPECT_EQ(ec, errc::closed);
  open.watch_by(gone, ec);
  EXPECT_EQ(ec, errc::closed);
  const endpoint none(pair.reader, pair.owner.address(), {.watched_by = &gone}, ec);
  EXPECT_EQ(ec, errc::closed);
  endpoint leaving = pair.connect();
  request left = leaving.start_close();
  open.watch_by(leaving, ec);
  EXPECT_EQ(ec, errc::closed);
  const endpoint late(pair.reader, pair.owner.address(), {.watched_by = &leaving}, ec);
  EXPECT_EQ(ec, errc::closed);
  left.wait();
  EXPECT_FALSE(open.status());
}

TEST(ConnectionEnd, IsNotHeldBackByARingOfCompanions) {
  simulated_pair pair;
  {
    endpoint a = pair.connect();
    endpoint b = pair.connect();
    endpoint c = pair.connect();
    std::error_code ec;
    a.watch_by(a, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    a.watch_by(b);
    b.watch_by(a, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    b.watch_by(c);
    EXPECT_THROW(c.watch_by(a), ucx::error) << "through b";
    a.watch_by(c);
    b.watch_by(a, ec);
    EXPECT_FALSE(ec) << "a keeps b open no more";
  }
  pair.network.advance(1s);
  EXPECT_EQ(pair.reader.connections(), 0U);
}

TEST(ConnectionEnd, CompanionLivesWhereTheNextIsRefused) {
  simulated_pair pair;
  endpoint watched = pair.connect();
  endpoint refused = pair.connect({.watched_by = &watched});
  watched.watch_by(pair.connect());  // nobody else holds it
  std::error_code ec;
  watched.watch_by(refused, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_TRUE(pair.network.run_until([&] { return pair.reader.connections() == 3U; }));
}

TEST(ConnectionEnd, OfAListenersConnectionNamesThemToo) {
  simulated_pair pair;
  std::optional<connection_end> told;
  listener_options doors;
  doors.events.on_closed = [&](const connection_end& end) { told = end; };
  const listener door(pair.owner, any_port, std::move(doors));
  const std::vector<std::byte> large = pattern(1U << 20U);
  {
    endpoint connection(pair.reader, door.address());
    connection.send(0xbac, {});
    EXPECT_TRUE(pair.network.run_until([&] { return pair.owner.probe(0xbac).has_value(); }));
    endpoint back = pair.owner.take(0xbac)->peer();
    std::error_code ec;
    back.post_send(2, large, 33, {}, ec);
    EXPECT_FALSE(ec);
    pair.network.advance(1ms);
  }
  pair.network.advance(1s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::closed_by_peer);
  EXPECT_EQ(told->unsent, std::vector<std::uint64_t>{33});
}

/// Nobody but the worker holds the connection, which goes as soon as it is known to be lost.
TEST(ConnectionEnd, OfAListenersConnectionIsToldWhereNobodyHoldsIt) {
  simulated_pair pair;
  std::optional<connection_end> told;
  listener_options doors;
  doors.events.on_closed = [&](const connection_end& end) { told = end; };
  const listener door(pair.owner, any_port, std::move(doors));
  endpoint connection(pair.reader, door.address());
  connection.send(0xbac, {});
  EXPECT_TRUE(pair.network.run_until([&] { return pair.owner.probe(0xbac).has_value(); }));
  std::error_code ec;
  pair.owner.take(0xbac)->peer().post_send(
      2, pattern(10), 33, {.memory = send_memory::copied, .until = send_until::matched}, ec);
  EXPECT_FALSE(ec);
  pair.network.advance(1ms);
  pair.reader_process.stop();
  pair.network.advance(10s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::connection_reset);
  EXPECT_EQ(told->unsent, std::vector<std::uint64_t>{33});
  pair.reader_process.resume();
}

TEST(ConnectionRefusal, IsToldToTheListenerThatHadAccepted) {
  simulated_pair pair;
  std::vector<connection_end> told;
  listener_options doors;
  doors.terms = connection_terms{.unique = true};
  doors.events.on_refused = [&](const connection_end& refusal) { told.push_back(refusal); };
  const listener door(pair.owner, any_port, std::move(doors));
  const endpoint first(pair.reader, door.address());
  EXPECT_TRUE(told.empty());
  std::error_code ec;
  const endpoint second(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  pair.network.advance(5s);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].reason, errc::already_exists);
}

TEST(ConnectionRefusal, IsToldOfPeersThatNeverSayHello) {
  simulated_pair pair;
  std::vector<connection_end> told;
  listener_options doors;
  doors.events.on_refused = [&](const connection_end& refusal) { told.push_back(refusal); };
  const listener door(pair.owner, any_port, std::move(doors));
  frame_peer peer(pair.network, "peer");
  peer.reach(door.address().port());
  pair.network.advance(10s);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].reason, errc::timed_out);
}

}  // namespace
}  // namespace ucx::test
