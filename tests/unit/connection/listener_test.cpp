#include "ucx/listener.hpp"
#include "support/simulated/simulated_address.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/transports/two_ends.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

class Listener : public testing::Test {
 protected:
  void expect_reads(endpoint& connection) {
    remote_region region(connection, exposed_.descriptor());
    std::vector<std::byte> into(memory_.size());
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
  }

  simulated_pair pair_;
  std::vector<std::byte> memory_ = pattern(1000);
  memory_region exposed_{pair_.owner_context, std::span<std::byte>(memory_), access::read};
};

TEST_F(Listener, TellsItsPort) {
  const listener listening(pair_.owner, any_port);
  EXPECT_EQ(listening.address().host(), "127.0.0.1");
  EXPECT_NE(listening.address().port(), 0);
}

TEST_F(Listener, ServesWhoeverConnects) {
  const listener listening(pair_.owner, any_port);
  std::vector<endpoint> connections;
  for (int i = 0; i < 5; ++i) {
    connections.emplace_back(pair_.reader, listening.address());
    EXPECT_EQ(connections.back().peer(), listening.address());
    expect_reads(connections.back());
  }
}

/// Each end is found by a number of its own, beside a connection by address, which has one end.
TEST_F(Listener, ConnectsItsOwnWorker) {
  std::optional<endpoint> accepted;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair_.owner, std::move(request));
  });
  endpoint made(pair_.owner, listening.address());
  endpoint by_address(pair_.owner, pair_.owner.address());
  ASSERT_TRUE(accepted);
  accepted->wait_connected();
  by_address.wait_connected();
  EXPECT_EQ(pair_.owner.connections(), 3U);
  expect_carries(pair_.owner_context, made, *accepted);
  expect_carries(pair_.owner_context, *accepted, made);
  expect_carries(pair_.owner_context, by_address, by_address);
  made.close();
  pair_.network.run_until([&] { return static_cast<bool>(accepted->status()); });
  EXPECT_EQ(accepted->status(), errc::closed_by_peer);
}

TEST_F(Listener, IsLeftByItsOwnWorkersOtherEnd) {
  std::optional<endpoint> accepted;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair_.owner, std::move(request));
  });
  endpoint made(pair_.owner, listening.address());
  accepted->close();
  pair_.network.run_until([&] { return static_cast<bool>(made.status()); });
  EXPECT_EQ(made.status(), errc::closed_by_peer);
}

TEST_F(Listener, RefusesAPortThatIsTaken) {
  const listener first(pair_.owner, any_port);
  std::error_code ec;
  const listener second(pair_.owner, first.address(), {}, ec);
  EXPECT_EQ(ec, errc::address_in_use);
  EXPECT_EQ(second.address(), socket_address());
  const listener deciding(
      pair_.owner, first.address(), [](connection_request&&) {}, ec);
  EXPECT_EQ(ec, errc::address_in_use);
  EXPECT_EQ(deciding.address(), socket_address());
  try {
    const listener third(pair_.owner, first.address());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_NE(std::string(failed.what()).find(to_string(first.address())), std::string::npos);
  }
}

TEST_F(Listener, RefusesAnAddressThatIsNone) {
  std::error_code ec;
  const listener none(pair_.owner, socket_address(), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

TEST_F(Listener, HandlerDecidesAboutEachPeer) {
  std::vector<endpoint> accepted;
  std::vector<socket_address> peers;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    peers.push_back(request.peer());
    if (peers.size() % 2 == 1) accepted.emplace_back(pair_.owner, std::move(request));
  });
  endpoint welcome(pair_.reader, listening.address());
  expect_reads(welcome);
  std::error_code ec;
  const endpoint refused(pair_.reader, listening.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_NE(peers[0].port(), 0);
  EXPECT_NE(peers[0].port(), peers[1].port());
  EXPECT_EQ(accepted.front().peer(), peers[0]);
}

TEST_F(Listener, HandlerMayRejectInSoManyWords) {
  const listener listening(pair_.owner, any_port, [](connection_request request) {
    request.reject();
    request.reject();
    EXPECT_EQ(request.peer(), socket_address());
  });
  try {
    const endpoint refused(pair_.reader, listening.address());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_refused);
    EXPECT_NE(std::string(failed.what()).find(to_string(listening.address())), std::string::npos)
        << failed.what();
    // So does UCX, where the peer's is of a version that this one's does not connect with.
    EXPECT_NE(std::string(failed.what()).find("does not connect with this one's, 1."),
              std::string::npos)
        << failed.what();
  }
}

TEST_F(Listener, RequestMayBeAcceptedLater) {
  std::optional<connection_request> kept;
  std::optional<endpoint> accepted;
  const listener listening(pair_.owner, any_port,
                           [&](connection_request request) { kept = std::move(request); });
  pair_.owner_process.on_pump([&] {
    pair_.owner.progress();
    if (kept && !accepted) accepted.emplace(pair_.owner, std::move(*kept));
  });
  endpoint connection(pair_.reader, listening.address());
  expect_reads(connection);
  pair_.owner_process.on_pump([&] { pair_.owner.progress(); });
}

TEST_F(Listener, RequestIsAcceptedOnce) {
  std::optional<endpoint> accepted;
  bool tried = false;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair_.owner, std::move(request));
    std::error_code ec;
    const endpoint again(pair_.owner, std::move(request), {}, ec);
    EXPECT_EQ(ec, errc::closed);
    tried = true;
  });
  endpoint connection(pair_.reader, listening.address());
  EXPECT_TRUE(tried);
}

TEST_F(Listener, RequestBelongsToTheListenersWorker) {
  bool tried = false;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    const worker other(pair_.owner_context);
    std::error_code ec;
    const endpoint elsewhere(other, std::move(request), {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    tried = true;
  });
  std::error_code ec;
  const endpoint refused(pair_.reader, listening.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_TRUE(tried);
}

TEST_F(Listener, RequestOutlivesItsListener) {
  std::optional<connection_request> kept;
  {
    const listener listening(pair_.owner, any_port,
                             [&](connection_request request) { kept = std::move(request); });
    std::error_code ec;
    const endpoint waiting(pair_.reader, listening.address(), {.connect_timeout = 50ms}, ec);
    EXPECT_EQ(ec, errc::timed_out);
    ASSERT_TRUE(kept);
  }
  kept.reset();
  EXPECT_EQ(pair_.network.live().listeners, 0U);
}

TEST_F(Listener, ClosedOneRejects) {
  std::optional<connection_request> kept;
  listener listening(pair_.owner, any_port,
                     [&](connection_request request) { kept = std::move(request); });
  const socket_address address = listening.address();
  std::error_code ec;
  const endpoint first(pair_.reader, address, {.connect_timeout = 50ms}, ec);
  listening.close();
  listening.close();
  EXPECT_EQ(listening.address(), socket_address());
  // A request that is pending keeps UCX's listener; nobody is asked any more.
  const endpoint second(pair_.reader, address, {.connect_timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  kept.reset();
  const endpoint third(pair_.reader, address, {.connect_timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST_F(Listener, NobodyListeningIsARefusal) {
  const auto begin = pair_.network.now();
  std::error_code ec;
  const endpoint none(pair_.reader, socket_address("127.0.0.1:9"), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_LT(pair_.network.now() - begin, 1s);
}

TEST_F(Listener, ConnectingIsBoundedWhenNobodyAccepts) {
  std::optional<connection_request> kept;
  const listener listening(pair_.owner, any_port,
                           [&](connection_request request) { kept = std::move(request); });
  const auto begin = pair_.network.now();
  std::error_code ec;
  const endpoint none(pair_.reader, listening.address(), {.connect_timeout = 300ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_GE(pair_.network.now() - begin, 300ms);
  EXPECT_LT(pair_.network.now() - begin, 302ms);
}

TEST_F(Listener, ConnectingToAStoppedListenerIsBounded) {
  const listener listening(pair_.owner, any_port);
  pair_.owner_process.stop();
  std::error_code ec;
  const endpoint none(pair_.reader, listening.address(), {.connect_timeout = 300ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  pair_.owner_process.resume();
  pair_.network.advance(10s);
  endpoint connection(pair_.reader, listening.address());
  expect_reads(connection);
}

TEST_F(Listener, PeerThatNeverSaysHelloIsLetGo) {
  const listener listening(pair_.owner, any_port);
  frame_peer peer(pair_.network, "peer");
  peer.reach(listening.address().port());
  EXPECT_FALSE(peer.wait([&] { return !peer.failures.empty(); }, 4900ms));
  EXPECT_TRUE(peer.wait([&] { return !peer.failures.empty(); }, 300ms));
}

TEST_F(Listener, PeerThatNeverSaysHelloIsToldToTheHandlersOwner) {
  std::optional<endpoint> accepted;
  std::optional<std::error_code> told;
  const listener listening(pair_.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair_.owner, std::move(request),
                     endpoint_options{.events = {.on_refused = [&](const connection_end& refusal) {
                                        told = refusal.reason;
                                      }}});
  });
  frame_peer peer(pair_.network, "peer");
  peer.reach(listening.address().port());
  pair_.network.advance(10s);
  EXPECT_EQ(told, std::error_code(errc::timed_out));
}

TEST_F(Listener, WelcomesAHelloWithoutAnAddress) {
  const listener listening(pair_.owner, any_port);
  frame_peer peer(pair_.network, "peer");
  const ucp_ep_h to = peer.reach(listening.address().port());
  frame hello;
  hello.code = opcode::hello;
  hello.session = 99;
  peer.say(to, hello, {}, UCP_AM_SEND_FLAG_REPLY);
  frame_peer::heard_frame answer;
  ASSERT_TRUE(peer.await(opcode::welcome, answer));
  EXPECT_EQ(answer.said.session, 99U);
  EXPECT_EQ(answer.said.status, 0U);
}

TEST_F(Listener, TellsAnotherVersionThatItIsOne) {
  const listener listening(pair_.owner, any_port);
  frame_peer peer(pair_.network, "peer");
  const ucp_ep_h to = peer.reach(listening.address().port());
  frame hello;
  hello.code = opcode::hello;
  hello.session = 99;
  frame::bytes header;
  hello.encode(header);
  header[2] = std::byte{7};
  peer.say_bytes(to, header, {}, UCP_AM_SEND_FLAG_REPLY);
  frame_peer::heard_frame answer;
  ASSERT_TRUE(peer.await(opcode::welcome, answer));
  EXPECT_EQ(detail::status_error(answer.said.status), errc::version_mismatch);
  EXPECT_TRUE(peer.wait([&] { return !peer.failures.empty(); }, 2s));
}

TEST_F(Listener, AnotherVersionOfTheListenerIsNamed) {
  frame_peer peer(pair_.network, "peer");
  const std::uint16_t port = peer.listen();
  peer.process.on_pump([&] {
    peer.progress();
    for (const ucp_conn_request_h each : std::exchange(peer.requests, {})) peer.take(each);
  });
  peer.on_frame = [&](const frame_peer::heard_frame& heard) {
    if (heard.said.code != opcode::hello) return;
    frame refusal;
    refusal.code = opcode::welcome;
    refusal.session = heard.said.session;
    refusal.status = detail::error_status(errc::version_mismatch);
    frame::bytes header;
    refusal.encode(header);
    header[2] = std::byte{3};
    peer.say_bytes(heard.reply_to, header);
  };
  try {
    const endpoint refused(pair_.reader, socket_address("127.0.0.1", port));
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::version_mismatch);
    const std::string text = failed.what();
    EXPECT_NE(text.find("version 3"), std::string::npos) << text;
    EXPECT_NE(text.find("version 1"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(port)), std::string::npos) << text;
  }
  peer.process.on_pump([&] { peer.progress(); });
}

TEST_F(Listener, AcceptedConnectionsOutliveIt) {
  std::optional<listener> listening(std::in_place, pair_.owner, any_port);
  endpoint connection(pair_.reader, listening->address());
  listening.reset();
  expect_reads(connection);
}

TEST_F(Listener, OutlivesTheHandleOfItsWorker) {
  std::optional<worker> other(std::in_place, pair_.owner_context);
  worker* const driver = &*other;
  std::optional<listener> listening(std::in_place, *other, any_port);
  pair_.owner_process.on_pump([&] { driver->progress(); });
  {
    endpoint connection(pair_.reader, listening->address());
    expect_reads(connection);
  }
  pair_.owner_process.on_pump([&] { pair_.owner.progress(); });
  other.reset();
  EXPECT_EQ(pair_.network.live().workers, 3U);
  listening.reset();
  EXPECT_EQ(pair_.network.live().workers, 2U);
}

}  // namespace
}  // namespace ucx::test
