#include "ucx/endpoint.hpp"
#include "support/basics/mentions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "support/simulated/frame_peer.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "wire/frame.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

frame welcome_to(std::uint64_t session) {
  frame answer;
  answer.code = opcode::welcome;
  answer.session = session;
  return answer;
}

/// Sends `said` as a library of `version` would.
void say_as(frame_peer& peer, ucp_ep_h to, const frame& said, unsigned version,
            std::span<const std::byte> payload = {}) {
  frame::bytes header;
  said.encode(header);
  header[2] = static_cast<std::byte>(version);
  peer.say_bytes(to, header, payload, UCP_AM_SEND_FLAG_REPLY);
}

TEST(Endpoint, ConnectsByWorkerAddress) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.wait_connected();
  EXPECT_FALSE(connection.status());
  EXPECT_TRUE(connection.peer() == socket_address());
  EXPECT_FALSE(connection.transports().empty());
}

TEST(Endpoint, ConnectsToItsOwnWorker) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(100);
  memory_region exposed(pair.reader_context, std::span<std::byte>(memory), access::read_write);
  endpoint connection(pair.reader, pair.reader.address());
  remote_region region(connection, exposed.descriptor());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Endpoint, ManyConnectionsOfOneWorkerAreApart) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(1000);
  memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  std::vector<endpoint> connections;
  std::vector<remote_region> regions;
  for (int i = 0; i < 20; ++i) {
    connections.push_back(pair.connect());
    regions.emplace_back(connections.back(), exposed.descriptor());
  }
  std::vector<std::byte> into(10);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    regions[i].read_at(i * 10, into);
    EXPECT_TRUE(holds_pattern(into, 0, i * 10));
    connections[i].close();
  }
}

TEST(Endpoint, RefusesAnAddressThatReachesNobody) {
  simulated_pair pair;
  std::error_code ec;
  const endpoint none(pair.reader, worker_address(), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  EXPECT_THROW(endpoint(pair.reader, worker_address()), ucx::error);
  const endpoint nobody(pair.reader, socket_address(), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

TEST(Endpoint, ConnectingTimesOutWhenThePeerDoesNotAnswer) {
  simulated_pair pair;
  pair.owner_process.stop();
  const auto begin = pair.network.now();
  std::optional<std::error_code> told;
  endpoint connection = pair.connect(
      {.connect_timeout = 700ms, .events = {.on_refused = [&](const connection_end& refusal) {
                                   EXPECT_FALSE(told);
                                   told = refusal.reason;
                                 }}});
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(connection.status(), errc::timed_out);
  EXPECT_GE(pair.network.now() - begin, 700ms);
  EXPECT_LT(pair.network.now() - begin, 702ms);
  pair.reader.progress();
  EXPECT_EQ(told, std::error_code(errc::timed_out));
  EXPECT_THROW(connection.wait_connected(), ucx::error);
  pair.owner_process.resume();
}

TEST(Endpoint, DefaultOfTheWorkerBoundsConnecting) {
  simulated_pair_options options;
  options.reader_worker.connect_timeout = 40ms;
  simulated_pair pair(options);
  pair.owner_process.stop();
  const auto begin = pair.network.now();
  endpoint connection = pair.connect();
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(pair.network.now() - begin, 42ms);
  pair.owner_process.resume();
}

TEST(Endpoint, OperationsThatWaitForTheConnectionFailWithIt) {
  served_region served(100);
  served.pair.owner_process.stop();
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  request write = served.region.start_write_at(0, into);
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  write.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.region.flush({}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  served.pair.owner_process.resume();
}

TEST(Endpoint, DeadAddressIsALostConnection) {
  simulated_pair pair;
  worker_address gone;
  {
    const worker other(pair.owner_context);
    gone = other.address();
  }
  endpoint connection(pair.reader, gone);
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::unreachable);
}

TEST(Endpoint, SaysHelloAndBye) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  peer.welcome_everybody();
  endpoint connection(pair.reader, peer.its_address());
  connection.wait_connected();
  frame_peer::heard_frame hello;
  ASSERT_TRUE(peer.await(opcode::hello, hello));
  EXPECT_NE(hello.said.session, 0U);
  EXPECT_EQ(hello.address(), pair.reader.address());
  peer.on_frame = [&](const frame_peer::heard_frame& heard) {
    if (heard.said.code != opcode::bye) return;
    frame answer;
    answer.code = opcode::farewell;
    answer.session = heard.said.session;
    peer.say(peer.guest, answer);
  };
  const auto begin = pair.network.now();
  connection.close();
  EXPECT_LT(pair.network.now() - begin, 100ms);
  frame_peer::heard_frame bye;
  ASSERT_TRUE(peer.await(opcode::bye, bye));
  EXPECT_EQ(bye.said.session, hello.said.session);
}

TEST(Endpoint, ClosesAlthoughNobodySaysFarewell) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  peer.welcome_everybody();
  endpoint connection(pair.reader, peer.its_address());
  connection.wait_connected();
  const auto begin = pair.network.now();
  std::error_code ec;
  connection.close(close_mode::flush, ec);
  EXPECT_FALSE(ec);
  EXPECT_LT(pair.network.now() - begin, 1100ms);
}

TEST(Endpoint, AnotherVersionsWelcomeNamesBothVersions) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  for (const unsigned version : {2U, 77U, 255U}) {
    endpoint connection(pair.reader, peer.its_address());
    frame_peer::heard_frame hello;
    ASSERT_TRUE(peer.await(opcode::hello, hello));
    const ucp_ep_h back = peer.reach(hello.address());
    frame refusal = welcome_to(hello.said.session);
    refusal.status = detail::error_status(errc::version_mismatch);
    say_as(peer, back, refusal, version);
    try {
      connection.wait_connected();
      FAIL();
    } catch (const ucx::error& failed) {
      EXPECT_EQ(failed.code(), errc::version_mismatch);
      const std::string text = failed.what();
      EXPECT_TRUE(mentions(text, "version " + std::to_string(version))) << text;
      EXPECT_TRUE(mentions(text, "version " + std::to_string(protocol_version()))) << text;
    }
    EXPECT_EQ(connection.status(), errc::version_mismatch);
  }
}

TEST(Endpoint, OwnerTellsAnotherVersionThatItIsOne) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  frame hello;
  hello.code = opcode::hello;
  hello.session = 4711;
  say_as(peer, to, hello, 9, peer.its_address().encode());
  frame_peer::heard_frame answer;
  ASSERT_TRUE(peer.await(opcode::welcome, answer));
  EXPECT_EQ(answer.said.version, detail::protocol_version_number);
  EXPECT_EQ(answer.said.session, 4711U);
  EXPECT_EQ(detail::status_error(answer.said.status), errc::version_mismatch);
  // And lets it go.
  EXPECT_TRUE(peer.wait([&] { return !peer.failures.empty(); }));
}

TEST(Endpoint, FramesOfAnotherVersionAreNotAnswered) {
  served_region served(100);
  frame_peer peer(served.network(), "peer");
  const ucp_ep_h to = peer.reach(served.pair.owner.address());
  ASSERT_TRUE(peer.open_session(to, 12));
  frame ping;
  ping.code = opcode::ping;
  ping.session = 12;
  say_as(peer, to, ping, 2);
  frame_peer::heard_frame pong;
  EXPECT_FALSE(peer.await(opcode::pong, pong, 100ms));
  say_as(peer, to, ping, detail::protocol_version_number);
  EXPECT_TRUE(peer.await(opcode::pong, pong, 100ms));
}

TEST(Endpoint, HelloTwiceIsWelcomedTwice) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  ASSERT_TRUE(peer.open_session(to, 5));
  const std::uint64_t made = pair.owner_process.count(call::ep_create);
  frame hello;
  hello.code = opcode::hello;
  hello.session = 5;
  peer.say(to, hello, peer.its_address().encode());
  pair.network.advance(50ms);
  EXPECT_EQ(pair.owner_process.count(call::ep_create), made);
  frame ping;
  ping.code = opcode::ping;
  ping.session = 5;
  peer.say(to, ping);
  frame_peer::heard_frame pong;
  EXPECT_TRUE(peer.await(opcode::pong, pong));
}

TEST(Endpoint, HelloOfSessionZeroIsNotAnswered) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  EXPECT_FALSE(peer.open_session(to, 0));
  EXPECT_EQ(pair.owner_process.count(call::ep_create), 0U);
}

TEST(Endpoint, HelloWithADamagedAddressReachesUcxNever) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  const std::vector<std::byte> intact = peer.its_address().encode();
  frame hello;
  hello.code = opcode::hello;
  for (std::size_t bit = 0; bit < 8 * intact.size(); ++bit) {
    std::vector<std::byte> damaged = intact;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    hello.session = 1000 + bit;
    peer.say(to, hello, damaged);
  }
  for (std::size_t length = 1; length < intact.size(); ++length) {
    hello.session = 100000 + length;
    peer.say(to, hello, std::span(intact).first(length));
  }
  pair.network.advance(100ms);
  EXPECT_EQ(pair.owner_process.count(call::ep_create), 0U);
  EXPECT_EQ(peer.count(opcode::welcome), 0U);
  EXPECT_TRUE(peer.open_session(to, 1));
}

TEST(Endpoint, HelloWithoutAnAddressIsNotAnswered) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  frame hello;
  hello.code = opcode::hello;
  hello.session = 8;
  peer.say(to, hello, {}, UCP_AM_SEND_FLAG_REPLY);
  pair.network.advance(100ms);
  EXPECT_EQ(peer.count(opcode::welcome), 0U);
}

TEST(Endpoint, LostConnectionTellsWhyAndOnce) {
  served_region served(100);
  int told = 0;
  std::error_code why;
  endpoint connection =
      served.pair.connect({.events = {.on_closed = [&](const connection_end& end) {
                             ++told;
                             why = end.reason;
                           }}});
  connection.wait_connected();
  served.pair.owner_process.kill();
  served.network().advance(1s);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(why, errc::connection_reset);
  EXPECT_EQ(connection.status(), errc::connection_reset);
}

TEST(Endpoint, ClosingOnThisSideIsNoLoss) {
  simulated_pair pair;
  int told = 0;
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    endpoint connection =
        pair.connect({.events = {.on_closed = [&](const connection_end&) { ++told; }}});
    connection.wait_connected();
    connection.close(mode);
    pair.network.advance(100ms);
    EXPECT_EQ(connection.status(), errc::closed);
  }
  EXPECT_EQ(told, 0);
}

TEST(Endpoint, CloseIsIdempotent) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  connection.close();
  connection.close();
  connection.close(close_mode::abort);
  std::error_code ec = errc::busy;
  connection.close(close_mode::flush, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(connection.status(), errc::closed);
}

TEST(Endpoint, AbortCompletesWhatIsOutstandingWithCanceled) {
  served_region served(100);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> bytes(100);
  request read = served.region.start_read_at(0, bytes);
  request write = served.region.start_write_at(0, bytes);
  request flush = served.region.start_flush();
  served.connection.close(close_mode::abort);
  EXPECT_EQ(read.error(), errc::canceled);
  ASSERT_TRUE(flush.done());
  EXPECT_EQ(flush.error(), errc::canceled);
  ASSERT_TRUE(write.done());
  EXPECT_EQ(served.connection.status(), errc::closed);
  EXPECT_EQ(served.region.start_read_at(0, bytes).error(), errc::closed);
  EXPECT_EQ(served.region.start_write_at(0, bytes).error(), errc::closed);
  served.pair.owner_process.resume();
}

TEST(Endpoint, FlushingCloseWaitsForWhatIsOutstanding) {
  served_region served(10000, with_pieces_of(4096));
  const std::vector<std::byte> from = pattern(10000, 1);
  std::vector<std::byte> into(10000);
  request write = served.region.start_write_at(0, from);
  request read = served.region.start_read_at(0, into);
  const auto begin = served.network().now();
  served.connection.close();
  EXPECT_LT(served.network().now() - begin, 1ms);  // with the answers, and no later
  EXPECT_TRUE(write.done());
  EXPECT_FALSE(write.error());
  EXPECT_TRUE(read.done());
  EXPECT_FALSE(read.error());
  EXPECT_EQ(served.memory, from);
}

TEST(Endpoint, FlushingCloseIsBoundedWhenThePeerIsStopped) {
  simulated_pair_options options;
  options.reader_worker.close_timeout = 300ms;
  served_region served(100, options);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  const auto begin = served.network().now();
  std::error_code ec;
  served.connection.close(close_mode::flush, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(served.network().now() - begin, 310ms);
  EXPECT_EQ(read.error(), errc::canceled);
  served.pair.owner_process.resume();
}

TEST(Endpoint, FlushCompletesWhenEarlierWritesAreVisible) {
  served_region served(100000, with_pieces_of(4096));
  remote_region other = served.region.share();
  const std::vector<std::byte> from = pattern(100000, 1);
  request first = served.region.start_write_at(0, std::span(from).first(50000));
  request second = other.start_write_at(50000, std::span(from).subspan(50000));
  served.connection.flush();
  EXPECT_EQ(served.memory, from);
  first.wait();
  second.wait();
}

TEST(Endpoint, PeerThatClosesLeavesAResetBehind) {
  served_region served(100);
  served.connection.wait_connected();
  std::vector<std::byte> into(100);
  {
    frame_peer peer(served.network(), "peer");
    peer.welcome_everybody();
    endpoint connection(served.pair.reader, peer.its_address());
    connection.wait_connected();
    remote_region region(connection, served.exposed.descriptor());
    request read = region.start_read_at(0, into);
    frame_peer::heard_frame question;
    ASSERT_TRUE(peer.await(opcode::read, question));
    peer.close(peer.guest);
    peer.forget(peer.guest);
    std::error_code ec;
    read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
  served.region.read_at(0, into);
}

TEST(Endpoint, PeerThatSaysByeIsLetGo) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  ASSERT_TRUE(peer.open_session(to, 5));
  frame bye;
  bye.code = opcode::bye;
  bye.session = 5;
  peer.say(to, bye);
  frame_peer::heard_frame farewell;
  ASSERT_TRUE(peer.await(opcode::farewell, farewell));
  EXPECT_EQ(farewell.said.session, 5U);
  EXPECT_TRUE(peer.wait([&] { return !peer.failures.empty(); }, 2s));
}

TEST(Endpoint, WaitingInsideAHandlerIsRefused) {
  served_region served(100);
  served.connection.wait_connected();
  std::vector<std::byte> into(100);
  bool ran = false;
  request read = served.region.start_read_at(0, into);
  read.then([&](std::error_code) {
    ran = true;
    std::error_code ec;
    served.connection.close(close_mode::flush, ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    endpoint late(served.pair.reader, socket_address("127.0.0.1:1"), {}, ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    endpoint connecting(served.pair.reader, served.pair.owner.address(), {}, ec);
    EXPECT_FALSE(ec);
    connecting.wait_connected(ec);
    EXPECT_EQ(ec, errc::would_deadlock);
  });
  read.wait();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(served.connection.status());
}

TEST(Endpoint, MovedFromIsClosed) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  const endpoint taken = std::move(connection);
  EXPECT_EQ(connection.status(), errc::closed);  // NOLINT(bugprone-use-after-move)
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::closed);
  connection.close();
  EXPECT_TRUE(connection.start_flush().done());
  EXPECT_TRUE(connection.transports().empty());
}

TEST(Endpoint, PeerOfAnotherVersionByAddressIsToldSo) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  // Its envelope is of its version, but the body is UCX's own in every version.
  std::vector<std::byte> address = peer.its_address().encode();
  address.resize(address.size() - 8);
  address[4] = std::byte{2};
  detail::wire_writer sealed;
  sealed.put(address);
  sealed.put(detail::checksum(address));
  frame hello;
  hello.code = opcode::hello;
  hello.session = 8;
  say_as(peer, to, hello, 2, sealed.bytes());
  frame_peer::heard_frame answer;
  ASSERT_TRUE(peer.await(opcode::welcome, answer));
  EXPECT_EQ(answer.said.session, 8U);
  EXPECT_EQ(answer.said.version, protocol_version());
  EXPECT_EQ(detail::status_error(answer.said.status), errc::version_mismatch);
}

TEST(Endpoint, HelloThatIsTooLongIsNotAnswered) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  const ucp_ep_h to = peer.reach(pair.owner.address());
  detail::wire_writer writer = detail::envelope::begin("UXWA");
  writer.put(std::vector<std::byte>((std::size_t{64} << 10U) + 1));
  frame hello;
  hello.code = opcode::hello;
  hello.session = 8;
  peer.say(to, hello, detail::envelope::end(std::move(writer)), UCP_AM_SEND_FLAG_REPLY);
  pair.network.advance(100ms);
  EXPECT_EQ(peer.count(opcode::welcome), 0U);
}

TEST(Endpoint, AnswerToAQuestionThatWasNotAskedYetIsDropped) {
  simulated_pair pair;
  frame_peer peer(pair.network, "peer");
  endpoint connection(pair.reader, peer.its_address());
  frame_peer::heard_frame hello;
  ASSERT_TRUE(peer.await(opcode::hello, hello));
  const ucp_ep_h to = peer.reach(hello.address());
  remote_descriptor descriptor;
  descriptor.region = 1;
  descriptor.size = 100;
  descriptor.granted = access::read_write;
  remote_region region(connection, descriptor);
  std::vector<std::byte> bytes(100);
  request write = region.start_write_at(0, bytes);
  request read = region.start_read_at(0, bytes);
  for (const std::uint64_t index : {0U, 1U}) {
    frame early;
    early.code = index == 0 ? opcode::written : opcode::data;
    early.session = hello.said.session;
    early.request = (std::uint64_t{1} << 32U) | index;  // the first use of the first places
    early.length = 100;
    peer.say(to, early, bytes);
  }
  pair.network.advance(10ms);
  EXPECT_FALSE(connection.status());
  EXPECT_FALSE(write.done());
  EXPECT_FALSE(read.done());
  peer.say(to, welcome_to(hello.said.session));
  write.wait();
}

TEST(Endpoint, ConstructorThatFailedDoesNotTellItsHandler) {
  simulated_pair pair;
  const socket_address nobody("127.0.0.1:39999");
  int told = 0;
  const auto tell = [&](const connection_end&) { ++told; };
  std::error_code ec;
  const endpoint none(pair.reader, nobody, {.events = {.on_refused = tell}}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_THROW(endpoint(pair.reader, nobody, {.events = {.on_refused = tell}}), ucx::error);
  pair.network.advance(100ms);
  for (int i = 0; i < 10; ++i) pair.reader.progress();
  EXPECT_EQ(told, 0);
}

TEST(Endpoint, HandlerOfALossIsNotCalledBehindTheEndpoint) {
  for (const bool closes : {true, false}) {
    simulated_pair pair;
    int told = 0;
    std::optional<endpoint> connection =
        pair.connect({.events = {.on_closed = [&](const connection_end&) { ++told; }}});
    connection->wait_connected();
    pair.reader_process.on_pump({});
    pair.owner_process.kill();
    pair.network.advance(10ms);  // the notice is there, and nobody has looked
    bool lost = false;
    for (int i = 0; i < 100; ++i) {
      // In the round of the loss it runs behind that, and before the handler.
      pair.reader.post([&] {
        if (lost || !connection->status()) return;
        lost = true;
        if (closes) {
          connection->close(close_mode::abort);
        } else {
          connection.reset();
        }
      });
      pair.reader.progress();
    }
    EXPECT_TRUE(lost);
    EXPECT_EQ(told, 0);
  }
}

TEST(Endpoint, FlushOfNoneIsClosed) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  const endpoint taken = std::move(connection);
  EXPECT_EQ(connection.start_flush().error(), errc::closed);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(connection.flush(), ucx::error);
}

}  // namespace
}  // namespace ucx::test
