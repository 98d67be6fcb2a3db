// Peers that wait for a listener, and what becomes of them when it closes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/handlers/fire.hpp"
#include "support/handlers/lock_probe.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(AwaitedPeers, AreTakenInOrder) {
  simulated_pair pair;
  listener_options doors;
  doors.manual_accept = true;
  listener door(pair.owner, any_port, std::move(doors));
  std::vector<endpoint> accepted;
  std::error_code over;
  const auto serve = [&]() -> fire {
    try {
      for (;;) accepted.emplace_back(pair.owner, co_await door.accept());
    } catch (const ucx::error& failed) {
      over = failed.code();
    }
  };
  serve();
  std::vector<endpoint> connections;
  for (int i = 0; i < 3; ++i) connections.emplace_back(pair.reader, door.address());
  EXPECT_EQ(accepted.size(), 3U);
  EXPECT_EQ(door.connections(), 3U);
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    EXPECT_EQ(accepted[i].peer(), connections[i].local());
  }
  door.close();
  pair.owner.progress();
  EXPECT_EQ(over, errc::closed);
}

TEST(AwaitedPeers, AreHandedToACoroutineUnderNoLock) {
  simulated_pair_options options;
  options.owner_worker.thread_mode = thread_mode::multi;
  simulated_pair pair(options);
  listener_options doors;
  doors.manual_accept = true;
  listener door(pair.owner, any_port, std::move(doors));
  lock_probe lock(pair.owner);
  std::optional<bool> is_free;
  std::optional<connection_request> came;
  const auto serve = [&]() -> fire {
    came = co_await door.accept();
    is_free = lock.is_free();
  };
  serve();
  endpoint knocking(pair.reader, door.address(), {.wait = connect_wait::none});
  pair.network.advance(1ms);
  for (int i = 0; i < 20 && !is_free; ++i) pair.owner.progress();
  EXPECT_EQ(is_free, true);
}

TEST(AwaitedPeers, AreWaitedForWithinADeadline) {
  simulated_pair pair;
  listener_options doors;
  doors.manual_accept = true;
  listener door(pair.owner, any_port, std::move(doors));
  std::error_code ec;
  auto nobody = door.accept();
  const connection_request none = nobody.wait({.timeout = 10ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(none.peer(), socket_address());
  EXPECT_THROW(static_cast<void>(door.accept().wait({.timeout = 1ms})), ucx::error);
  endpoint knocking(pair.reader, door.address(), {.wait = connect_wait::none});
  endpoint accepted(pair.owner, nobody.wait());
  knocking.wait_connected();
  EXPECT_EQ(door.connections(), 1U);
}

TEST(AwaitedPeers, NeedAListenerThatLetsThemWait) {
  simulated_pair pair;
  listener door(pair.owner, any_port);
  std::error_code ec;
  const connection_request none = door.accept().wait({}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(AwaitedPeers, AreRefusedBeyondTheListenersLimit) {
  simulated_pair pair;
  listener_options doors;
  doors.manual_accept = true;
  doors.backlog = 2;
  listener door(pair.owner, any_port, std::move(doors));
  std::vector<endpoint> knocking;
  for (int i = 0; i < 5; ++i) {
    knocking.emplace_back(pair.reader, door.address(),
                          endpoint_options{.wait = connect_wait::none});
  }
  pair.network.advance(1ms);
  for (int i = 0; i < 20; ++i) pair.reader.progress();
  int refused = 0;
  for (const endpoint& each : knocking) {
    refused += each.state() == connection_state::failed ? 1 : 0;
  }
  EXPECT_EQ(refused, 3);
}

// The end of listeners.

TEST(ListenerClose, KeepsOrClosesItsConnections) {
  for (const bool keeps : {true, false}) {
    simulated_pair pair;
    std::vector<connection_end> ends;
    listener door(pair.owner, any_port);
    std::vector<endpoint> connections;
    for (int i = 0; i < 3; ++i) {
      connections.emplace_back(
          pair.reader, door.address(),
          endpoint_options{
              .events = {.on_closed = [&](const connection_end& end) { ends.push_back(end); }}});
    }
    EXPECT_EQ(door.connections(), 3U);
    if (keeps) {
      door.close();
    } else {
      door.close(close_mode::flush);
    }
    pair.network.advance(2s);
    for (int i = 0; i < 10; ++i) pair.reader.progress();
    EXPECT_EQ(ends.size(), keeps ? 0U : 3U);
    for (const connection_end& end : ends) EXPECT_EQ(end.reason, errc::closed_by_peer);
    EXPECT_EQ(pair.owner.connections(), keeps ? 3U : 0U);
  }
}

TEST(ListenerClose, ClosesWhatUsersHoldToo) {
  simulated_pair pair;
  std::vector<endpoint> accepted;
  listener door(pair.owner, any_port, [&](connection_request request) {
    accepted.emplace_back(pair.owner, std::move(request));
  });
  endpoint connection(pair.reader, door.address());
  door.close(close_mode::abort);
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].state(), connection_state::closed);
}

}  // namespace
}  // namespace ucx::test
