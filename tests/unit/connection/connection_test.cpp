// What both sides of a connection are told, agree upon, and refuse.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/client.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/server.hpp"
#include "wire/introduction.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

std::vector<std::byte> bytes(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

simulated_pair_options named_sides() {
  simulated_pair_options options;
  options.owner_worker.name = "the owner";
  options.owner_worker.terms.info = bytes("owner's");
  options.reader_worker.name = "the reader";
  options.reader_worker.terms.info = bytes("reader's");
  return options;
}

TEST(Connection, TellsBothSidesWhatTheyCanDo) {
  simulated_pair_options sides = named_sides();
  sides.owner_context.features = feature::am | feature::rma | feature::tag;
  sides.reader_context.features = feature::am | feature::tag | feature::stream;
  simulated_pair pair(sides);
  std::vector<connection_report> accepted;
  listener_options doors;
  doors.events.on_established = [&](const endpoint&, const connection_report& report) {
    accepted.push_back(report);
  };
  const listener door(pair.owner, any_port, std::move(doors));
  std::vector<connection_report> made;
  endpoint connection(
      pair.reader, door.address(),
      {.events = {.on_established = [&](const endpoint&, const connection_report& report) {
         made.push_back(report);
       }}});
  pair.network.advance(1ms);
  pair.reader.progress();
  ASSERT_EQ(made.size(), 1U);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(made[0].features, feature::am | feature::tag);
  EXPECT_EQ(accepted[0].features, made[0].features);
  EXPECT_EQ(made[0].peer_name, "the owner");
  EXPECT_EQ(accepted[0].peer_name, "the reader");
  EXPECT_EQ(made[0].peer_info, bytes("owner's"));
  EXPECT_EQ(accepted[0].peer_info, bytes("reader's"));
  EXPECT_EQ(made[0].peer, door.address());
  EXPECT_EQ(made[0].local, accepted[0].peer);
  EXPECT_GT(made[0].segment_size, made[0].max_eager_size);
  EXPECT_GT(made[0].max_eager_size, 0U);
  EXPECT_EQ(made[0].max_header_size, connection.max_header_size());
  EXPECT_EQ(made[0].max_header_size, 4096U);
  EXPECT_FALSE(made[0].transports.empty());
  EXPECT_FALSE(made[0].native_rma);
  EXPECT_TRUE(made[0].watched);
  EXPECT_EQ(made[0].id, connection.id());
  EXPECT_EQ(connection.report().peer_name, "the owner");
  EXPECT_EQ(connection.peer_info(), bytes("owner's"));
  EXPECT_EQ(connection.local(), accepted[0].peer);
}

TEST(Connection, ReportsWhatSendsTake) {
  simulated_pair_options sides;
  sides.link.max_am_header = 1000;
  sides.owner_worker.message_window = 64U << 10U;
  simulated_pair pair(sides);
  endpoint connection = pair.connect();
  connection.wait_connected();
  const connection_report report = connection.report();
  EXPECT_EQ(report.max_header_size, connection.max_header_size());
  EXPECT_EQ(report.max_header_size, 960U);
  // Half of the window, of which each message takes 256 bytes for itself.
  EXPECT_EQ(report.max_eager_size, (32U << 10U) - 256);
  const std::vector<std::byte> longest(report.max_eager_size);
  connection.send(1, longest);
  const std::vector<std::byte> longer(report.max_eager_size + 1);
  const request announced = connection.start_send(2, longer);
  pair.network.advance(10ms);
  EXPECT_FALSE(announced.done());
}

TEST(Connection, OwnTermsWinOverTheListenersAndThoseOverTheWorkers) {
  simulated_pair pair(named_sides());
  std::optional<endpoint> accepted;
  listener_options doors;
  doors.terms = connection_terms{.info = bytes("door's")};
  bool own = false;
  doors.on_request = [&](connection_request request) {
    endpoint_options options;
    if (own) options.terms = connection_terms{.info = bytes("own")};
    accepted.emplace(pair.owner, std::move(request), std::move(options));
  };
  const listener door(pair.owner, any_port, std::move(doors));
  EXPECT_EQ(endpoint(pair.reader, door.address()).peer_info(), bytes("door's"));
  own = true;
  EXPECT_EQ(endpoint(pair.reader, door.address()).peer_info(), bytes("own"));
  endpoint by_address = pair.connect();
  by_address.wait_connected();
  EXPECT_EQ(by_address.peer_info(), bytes("owner's"));
}

TEST(Connection, TellsNoMoreThanAKilobyteOfItself) {
  simulated_pair pair;
  const connection_terms most{.info = std::vector<std::byte>(1024)};
  const connection_terms too_much{.info = std::vector<std::byte>(1025)};
  endpoint connection = pair.connect({.terms = most});
  connection.wait_connected();
  std::error_code ec;
  const endpoint none(pair.reader, pair.owner.address(), {.terms = too_much}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  listener_options doors;
  doors.terms = too_much;
  const listener door(pair.owner, any_port, std::move(doors), ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const worker loud(pair.owner_context, {.terms = too_much}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const worker named(pair.owner_context, {.name = std::string(65, 'x')}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(Connection, TermsNeedMessages) {
  simulated_pair_options sides;
  sides.owner_context.features = feature::rma;
  sides.reader_context.features = feature::rma;
  simulated_pair pair(sides);
  const listener door(pair.owner, any_port);
  const connection_terms each[] = {
      {.info = bytes("us")}, {.unique = true}, {.require_rdma = true}, {.transports = {"tcp"}}};
  for (const connection_terms& terms : each) {
    const std::uint64_t made = pair.network.count(call::ep_create);
    std::error_code ec;
    const endpoint by_socket(pair.reader, door.address(), {.terms = terms}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    const endpoint by_address(pair.reader, pair.owner.address(), {.terms = terms}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    const endpoint by_name(pair.reader, {"127.0.0.1", door.address().port()}, {.terms = terms}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    EXPECT_EQ(pair.network.count(call::ep_create), made) << "before UCX is called";
    listener_options doors;
    doors.terms = terms;
    const listener strict(pair.owner, any_port, std::move(doors), ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    const worker whole(pair.owner_context, {.terms = terms}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    const connection_manager many(pair.reader, {.terms = terms}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
  }
  std::error_code ec;
  const endpoint silent(pair.reader, pair.owner.address(), {.terms = connection_terms()}, ec);
  EXPECT_FALSE(ec) << "terms that say nothing";
}

TEST(Connection, StateFollowsItsLife) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  EXPECT_EQ(connection.state(), connection_state::connecting);
  connection.wait_connected();
  EXPECT_EQ(connection.state(), connection_state::active);
  EXPECT_EQ(pair.reader.connections(), 1U);
  EXPECT_EQ(pair.owner.connections(), 1U);
  const request closing = connection.start_close();
  EXPECT_EQ(connection.state(), connection_state::closing);
  pair.network.advance(100ms);
  for (int i = 0; i < 20; ++i) pair.reader.progress();
  EXPECT_TRUE(closing.done());
  EXPECT_EQ(connection.state(), connection_state::closed);
  EXPECT_EQ(pair.reader.connections(), 0U);
  EXPECT_EQ(pair.owner.connections(), 0U);
  endpoint lost = pair.connect();
  lost.wait_connected();
  pair.owner_process.kill();
  pair.network.advance(1s);
  pair.reader.progress();
  EXPECT_EQ(lost.state(), connection_state::failed);
}

TEST(Connection, RefusalTellsItsReason) {
  simulated_pair pair;
  errc reason = errc::permission_denied;
  const listener door(pair.owner, any_port, [&](connection_request request) {
    EXPECT_EQ(request.local().host(), "127.0.0.1");
    request.reject(reason, "members only");
  });
  try {
    const endpoint refused(pair.reader, door.address());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::permission_denied);
    EXPECT_TRUE(mentions(failed.what(), "members only")) << failed.what();
  }
  std::optional<connection_end> told;
  endpoint later(
      pair.reader, door.address(),
      {.wait = connect_wait::none,
       .events = {.on_refused = [&](const connection_end& refusal) { told = refusal; }}});
  std::error_code ec;
  later.wait_connected(ec);
  for (int i = 0; i < 5; ++i) pair.reader.progress();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::permission_denied);
  EXPECT_EQ(told->error_message, "members only");
  EXPECT_EQ(told->peer, door.address());
  reason = errc::busy;  // final, although the protocol has another meaning for it
  const endpoint busy(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::busy);
  reason = errc::timed_out;  // which a peer finds out by itself
  const endpoint late(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_EQ(door.connections(), 0U);
  pair.network.advance(3s);
}

/// What an initiator is told of an owner that dies, once `accepts` or not, before its welcome.
std::error_code told_of_a_death(bool accepts) {
  simulated_pair pair;
  std::optional<connection_request> asked;
  const listener door(pair.owner, any_port,
                      [&](connection_request request) { asked = std::move(request); });
  std::error_code told;
  const endpoint connection(
      pair.reader, door.address(),
      {.wait = connect_wait::none,
       .events = {.on_refused = [&](const connection_end& refusal) { told = refusal.reason; }}});
  EXPECT_TRUE(pair.network.run_until([&] { return asked.has_value(); }));
  std::optional<endpoint> accepted;
  if (accepts) accepted.emplace(pair.owner, std::move(*asked));
  pair.owner_process.stop();
  pair.network.advance(10ms);
  EXPECT_EQ(connection.state(), connection_state::connecting);
  pair.owner_process.kill();
  EXPECT_TRUE(pair.network.run_until([&] { return static_cast<bool>(told); }));
  return told;
}

TEST(Connection, DeathBehindUcxsAcceptanceIsNoRefusal) {
  EXPECT_EQ(told_of_a_death(true), errc::connection_reset);
}

// A port where nobody listens has the same status in UCX.
TEST(Connection, DeathBeforeUcxsAcceptanceIsARefusal) {
  EXPECT_EQ(told_of_a_death(false), errc::connection_refused);
}

TEST(Connection, FailsAsUcxSaysWhereItWasNotRefused) {
  const std::pair<ucs_status_t, errc> outcomes[] = {
      {UCS_ERR_NOT_CONNECTED, errc::connection_refused},
      {UCS_ERR_CONNECTION_RESET, errc::connection_refused},
      {UCS_ERR_TIMED_OUT, errc::timed_out},
      {UCS_ERR_UNREACHABLE, errc::unreachable},
      {UCS_ERR_IO_ERROR, errc::connection_reset},
  };
  for (const auto& [status, expected] : outcomes) {
    simulated_pair_options sides;
    sides.link.refused_status = status;
    simulated_pair pair(sides);
    std::error_code ec;
    const endpoint none(pair.reader, nobody, {}, ec);
    EXPECT_EQ(ec, expected) << status;
    const endpoint named(pair.reader, {"127.0.0.1", nobody.port()}, {}, ec);
    EXPECT_EQ(ec, expected) << status;
  }
}

TEST(Connection, RefusalsWithAReasonAreBounded) {
  simulated_pair pair;
  int asked = 0;
  const listener door(pair.owner, any_port, [&](connection_request request) {
    ++asked;
    request.reject(errc::busy, "no");
  });
  // Peers that are told, and say nothing: each keeps a connection of the owner's for a while.
  frame_peer peer(pair.network, "silent");
  for (int i = 0; i < 80; ++i) peer.reach(door.address().port());
  pair.network.advance(10ms);
  EXPECT_EQ(asked, 80);
  EXPECT_TRUE(peer.wait([&] { return peer.failures.size() >= 16; }, 100ms)) << "refused by UCX";
  EXPECT_TRUE(peer.wait([&] { return peer.failures.size() >= 80; }, 6s)) << "dropped at last";
}

TEST(Connection, IsRefusedWhereItsTransportsAreNotAcceptable) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::error_code ec;
  const endpoint fast(pair.reader, door.address(),
                      {.terms = connection_terms{.require_rdma = true}}, ec);
  EXPECT_EQ(ec, errc::no_rdma);
  const endpoint other(pair.reader, door.address(),
                       {.terms = connection_terms{.transports = {"rc", "posix"}}}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const endpoint fine(pair.reader, door.address(),
                      {.terms = connection_terms{.transports = {"tcp", "self"}}}, ec);
  EXPECT_FALSE(ec);
  try {
    const endpoint again(pair.reader, door.address(),
                         {.terms = connection_terms{.require_rdma = true}});
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_TRUE(mentions(failed.what(), "tcp/")) << failed.what();
  }
}

TEST(Connection, IsMadeOverTheHardwareThatWasAskedFor) {
  simulated_pair_options sides;
  sides.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  sides.reader_context.require_rdma = true;
  simulated_pair pair(sides);
  const listener door(pair.owner, any_port);
  const auto outcome = [&](const connection_terms& terms) {
    std::error_code ec;
    const endpoint made(pair.reader, door.address(), {.terms = terms}, ec);
    EXPECT_TRUE(ec || made.report().zero_copy);
    return ec;
  };
  EXPECT_FALSE(outcome({.require_rdma = true}));
  EXPECT_FALSE(outcome({.transports = {"rc_mlx5"}}));
  EXPECT_FALSE(outcome({.require_rdma = true, .transports = {"rc"}})) << "of that family";
  EXPECT_EQ(outcome({.transports = {"rc_verbs"}}), errc::not_supported);
  EXPECT_EQ(outcome({.transports = {"r"}}), errc::not_supported) << "no family's name";
}

TEST(Connection, TellsWhyRegionsAreNotMovedByHardware) {
  struct row {
    std::vector<std::string> resources;
    std::string why;
  };
  const row rows[] = {
      {{"self/memory0", "rc_mlx5/mlx5_0:1"}, ""},
      {{"self/memory0", "tcp/lo"}, "this side has no RDMA hardware that it may use"},
      {{"self/memory0", "ud_verbs/rxe0:1"}, "the hardware of ud_verbs/rxe0:1 carries messages"},
  };
  for (const row& each : rows) {
    simulated_pair_options sides;
    sides.link.resources = each.resources;
    simulated_pair pair(sides);
    endpoint made = pair.connect();
    made.wait_connected();
    const connection_report report = made.report();
    EXPECT_EQ(report.native_rma, each.why.empty()) << report.why_not_rma;
    EXPECT_EQ(report.why_not_rma.empty(), each.why.empty()) << report.why_not_rma;
    EXPECT_TRUE(mentions(report.why_not_rma, each.why)) << report.why_not_rma;
  }
  simulated_pair_options without;
  without.link.resources = rows[0].resources;
  without.reader_context.features = feature::am | feature::wakeup;
  simulated_pair pair(without);
  endpoint made = pair.connect();
  made.wait_connected();
  EXPECT_TRUE(mentions(made.report().why_not_rma, "without feature::rma"));
}

TEST(Connection, OverSocketsIsNotMovedByHardware) {
  const server serving({.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}});
  const client made(serving.url());
  EXPECT_FALSE(made.connection().report().native_rma);
  EXPECT_EQ(made.connection().report().why_not_rma,
            "the connection goes over sockets, without UCX");
}

TEST(Connection, IsRefusedWhereOneLaneIsNoHardware) {
  simulated_pair_options sides;
  sides.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1", "tcp/lo"};
  sides.reader_context.require_rdma = true;  // there is such hardware, and no more is asked
  simulated_pair pair(sides);
  const listener door(pair.owner, any_port);
  std::error_code ec;
  const endpoint strict(pair.reader, door.address(),
                        {.terms = connection_terms{.require_rdma = true}}, ec);
  EXPECT_EQ(ec, errc::no_rdma);
  const endpoint family(pair.reader, door.address(),
                        {.terms = connection_terms{.transports = {"rc"}}}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const endpoint either(pair.reader, door.address(),
                        {.terms = connection_terms{.transports = {"rc", "tcp"}}}, ec);
  EXPECT_FALSE(ec);
}

TEST(Connection, OfAPeerThatDeclinesEndsSoon) {
  for (const bool watched : {true, false}) {
    SCOPED_TRACE(watched);
    simulated_pair pair(watched ? simulated_pair_options() : one_host());
    std::vector<connection_end> ends;
    listener_options doors;
    doors.events.on_closed = [&](const connection_end& end) { ends.push_back(end); };
    const listener door(pair.owner, any_port, std::move(doors));
    const connection_terms fast{.require_rdma = true};
    std::error_code ec;
    const endpoint declined(pair.reader, door.address(), {.terms = fast}, ec);
    EXPECT_EQ(ec, errc::no_rdma);
    endpoint by_worker = pair.connect({.terms = fast});
    by_worker.wait_connected(ec);
    EXPECT_EQ(ec, errc::no_rdma);
    pair.network.advance(2s);
    EXPECT_EQ(pair.owner.connections(), 0U);
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].reason, errc::connection_reset);
    EXPECT_EQ(ends[0].error_message, "the peer gave the connection up");
  }
}

TEST(Connection, ListenerRefusesTransportsToo) {
  simulated_pair pair;
  listener_options doors;
  doors.terms = connection_terms{.require_rdma = true};
  const listener door(pair.owner, any_port, std::move(doors));
  std::error_code ec;
  const endpoint refused(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::no_rdma);
  pair.network.advance(2s);
  EXPECT_EQ(pair.owner.connections(), 0U);
}

TEST(Connection, OrderlyEndIsToldApartFromALoss) {
  simulated_pair pair;
  std::vector<connection_end> ends;
  std::optional<endpoint> accepted;
  const listener door(pair.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair.owner, std::move(request),
                     endpoint_options{.events = {.on_closed = [&](const connection_end& end) {
                                        ends.push_back(end);
                                      }}});
  });
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    endpoint connection(pair.reader, door.address());
    pair.network.advance(1ms);
    connection.close(mode);
    pair.network.advance(2s);
  }
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].reason, errc::closed_by_peer);
  EXPECT_EQ(ends[0].reason, std::errc::connection_reset);
  EXPECT_EQ(ends[1].reason, errc::connection_reset);
  EXPECT_NE(ends[0].id, ends[1].id);
}

TEST(Connection, DamagedIntroductionIsAnError) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  endpoint connection(pair.reader, peer.its_address());
  frame_peer::heard_frame hello;
  ASSERT_TRUE(peer.await(opcode::hello, hello));
  frame answer;
  answer.code = opcode::welcome;
  answer.session = hello.said.session;
  peer.say(peer.reach(pair.reader.address()), answer, std::vector<std::byte>(100, std::byte{7}));
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::protocol_error);
}

/// A worker that connects to itself hears its own hello. So another peer may say the same: number
/// and identity are no secrets of the peer that was connected to.
class SecondHello : public ::testing::Test {
 protected:
  SecondHello() {
    server_.welcome_everybody();
    connection_.emplace(pair_.reader, server_.its_address());
    connection_->wait_connected();
    EXPECT_TRUE(server_.await(opcode::hello, first_));
  }
  /// Says it again, as `liar`, which is to be answered at `from`; or by the connection it came by.
  void say(frame_peer& liar, ucp_ep_h to, const std::vector<std::byte>& from) {
    frame hello;
    hello.code = opcode::hello;
    hello.session = first_.said.session;
    std::vector<std::byte> payload = from;
    const auto same = detail::read_greeting(first_.payload).introduction;
    EXPECT_FALSE(same.empty());
    payload.insert(payload.end(), same.begin(), same.end());
    liar.say(to, hello, payload, UCP_AM_SEND_FLAG_REPLY);
  }
  /// The liar is refused; what goes over the connection still has the number that was agreed on.
  void expect_taken(frame_peer& liar) {
    frame_peer::heard_frame answer;
    ASSERT_TRUE(liar.await(opcode::welcome, answer));
    EXPECT_EQ(detail::status_error(answer.said.status), errc::busy);
    EXPECT_EQ(server_.count(opcode::welcome), 0U);
    EXPECT_FALSE(connection_->status());
    connection_->close(close_mode::flush);
    frame_peer::heard_frame bye;
    ASSERT_TRUE(server_.await(opcode::bye, bye));
    EXPECT_EQ(bye.said.session, first_.said.session);
  }

  simulated_pair pair_;
  frame_peer server_{pair_.network, "server"};
  std::optional<endpoint> connection_;
  frame_peer::heard_frame first_;
};

TEST_F(SecondHello, ByWorkerAddressIsOfAnotherPeer) {
  frame_peer liar(pair_.network, "liar");
  say(liar, liar.reach(pair_.reader.address()), liar.its_address().encode());
  expect_taken(liar);
}

TEST_F(SecondHello, AtAListenerIsOfAnotherPeer) {
  const listener door(pair_.reader, any_port);
  frame_peer liar(pair_.network, "liar");
  say(liar, liar.reach(door.address().port()), {});
  expect_taken(liar);
}

// Closing without waiting.

TEST(Connection, ClosesWithoutWaiting) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.wait_connected();
  std::optional<std::error_code> outcome;
  request closing = connection.start_close();
  closing.then([&](std::error_code ec) { outcome = ec; });
  EXPECT_FALSE(closing.done());
  EXPECT_EQ(connection.status(), errc::closed);
  EXPECT_TRUE(connection.start_close().done()) << "a second one has nothing to do";
  closing.wait();
  pair.reader.progress();
  EXPECT_EQ(outcome, std::error_code());
  EXPECT_EQ(connection.state(), connection_state::closed);
}

TEST(Connection, CloseOfAStoppedPeerEndsInTime) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.wait_connected();
  pair.owner_process.stop();
  const auto begin = pair.network.now();
  request closing = connection.start_close();
  std::error_code ec;
  closing.wait(ec);
  EXPECT_FALSE(ec) << "nothing was outstanding";
  EXPECT_LT(pair.network.now() - begin, 4s);
  pair.owner_process.resume();
}

TEST(Connection, CloseMayBeAbortedOnItsWay) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.wait_connected();
  pair.owner_process.stop();
  request closing = connection.start_close();
  pair.reader.progress();
  closing.cancel();
  std::error_code ec;
  closing.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(connection.state(), connection_state::closed);
  pair.owner_process.resume();
}

TEST(Connection, CloseStartsInsideAHandler) {
  simulated_pair pair;
  std::optional<endpoint> connection;
  std::optional<request> closing;
  connection =
      pair.connect({.events = {.on_established = [&](const endpoint&, const connection_report&) {
                      closing = connection->start_close();
                    }}});
  std::error_code ec;
  connection->wait_connected(ec);
  EXPECT_TRUE(!ec || ec == errc::closed) << ec.message();
  pair.reader.progress();
  ASSERT_TRUE(closing);
  closing->wait();
  EXPECT_EQ(connection->state(), connection_state::closed);
}

TEST(Connection, CloseIsOverAlsoWhereItsRequestIsDropped) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.wait_connected();
  { const request dropped = connection.start_close(); }
  EXPECT_EQ(connection.state(), connection_state::closed);
  endpoint another = pair.connect();
  another.wait_connected();
  request closing = another.start_close();
  another.close(close_mode::abort);
  EXPECT_TRUE(closing.done());
}

// By the host's name.

TEST(ConnectByName, TriesAllAddressesWithinOneDeadline) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  endpoint by_number(pair.reader, {"127.0.0.1", door.address().port()});
  EXPECT_EQ(by_number.peer(), door.address());
  std::error_code ec;
  const endpoint none(pair.reader, {"", 7}, {}, ec);
  EXPECT_EQ(ec, errc::host_not_found);
  const endpoint nobody(pair.reader, {"127.0.0.1", 39999}, {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  const endpoint no_port(pair.reader, {"127.0.0.1", 0}, {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  try {
    const endpoint named(pair.reader, {"127.0.0.1", 39999});
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_TRUE(mentions(failed.what(), "127.0.0.1:39999")) << failed.what();
  }
}

TEST(ConnectByName, ArmsItsHandlers) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  int told = 0;
  endpoint connection(
      pair.reader, {"127.0.0.1", door.address().port()},
      {.events = {.on_established = [&](const endpoint&, const connection_report&) { ++told; }}});
  pair.reader.progress();
  EXPECT_EQ(told, 1);
}

TEST(ConnectFrom, NeedsAnAddressOfTheSameFamily) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::error_code ec;
  const endpoint none(pair.reader, door.address(), {.local = socket_address("[::1]:0")}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  const endpoint foreign(pair.reader, door.address(), {.local = socket_address("192.0.2.1:0")}, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

}  // namespace
}  // namespace ucx::test
