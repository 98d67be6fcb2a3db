#include "ucx/connection_manager.hpp"
#include "support/simulated/simulated_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class ConnectionManager : public testing::Test {
 protected:
  /// Lets time pass, in which the reader works.
  void pass(std::chrono::nanoseconds duration) {
    const auto until = pair_.network.now() + duration;
    while (pair_.network.now() < until) pair_.reader.progress();
  }
  static connection_manager_options quick() {
    connection_manager_options options;
    options.connect_timeout = 50ms;
    options.reconnect.first_delay = 10ms;
    options.reconnect.max_delay = 80ms;
    options.reconnect.jitter = 0;
    options.reconnect.max_attempts = 3;
    return options;
  }

  simulated_pair pair_;
};

TEST_F(ConnectionManager, ConnectsPeersByNameAndByAddress) {
  const listener door(pair_.owner, any_port);
  connection_manager manager(pair_.reader, quick());
  manager.add("socket", door.address());
  manager.add("worker", pair_.owner.address());
  manager.add("host", {"127.0.0.1", door.address().port()});
  EXPECT_EQ(manager.peers().size(), 3U);
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::connecting, &managed_peer::state),
            3);
  for (const char* const name : {"socket", "worker", "host"}) {
    const endpoint connection = manager.wait_active(name);
    EXPECT_EQ(connection.state(), connection_state::active) << name;
    EXPECT_EQ(manager.find(name).id(), connection.id());
    EXPECT_EQ(manager.status(name)->state, connection_state::active);
  }
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::active, &managed_peer::state), 3);
  EXPECT_EQ(manager.peers().size(), 3U);
  EXPECT_EQ(pair_.owner.connections(), 3U);
  manager.close();
  EXPECT_TRUE(manager.peers().empty());
  EXPECT_EQ(pair_.reader.connections(), 0U);
}

TEST_F(ConnectionManager, RefusesWhatMakesNoSense) {
  std::error_code ec;
  connection_manager_options odd;
  odd.reconnect.factor = 0.5;
  const connection_manager none(pair_.reader, odd, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  connection_manager_options few = quick();
  few.max_peers = 1;
  connection_manager manager(pair_.reader, few);
  manager.add("", nobody, ec);
  EXPECT_EQ(ec, errc::bad_name);
  manager.add("one", nobody, ec);
  EXPECT_FALSE(ec);
  manager.add("one", nobody, ec);
  EXPECT_EQ(ec, errc::already_exists);
  manager.add("two", nobody, ec);
  EXPECT_EQ(ec, errc::busy);
  const endpoint unknown = manager.wait_active("three", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_EQ(unknown.state(), connection_state::closed);
  manager.reconnect("three", ec);
  EXPECT_EQ(ec, errc::no_such_name);
  manager.close();
  manager.add("late", nobody, ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST_F(ConnectionManager, TriesAgainWithLongerDelaysAndGivesUp) {
  std::vector<std::chrono::nanoseconds> attempts;
  connection_manager_options options = quick();
  options.on_attempt = [&](const managed_peer& peer) {
    EXPECT_EQ(peer.name, "nobody");
    EXPECT_EQ(peer.failure, attempts.empty() ? std::error_code() : errc::connection_refused);
    EXPECT_EQ(peer.attempts, attempts.size());
    attempts.push_back(pair_.network.now().time_since_epoch());
    return true;
  };
  connection_manager manager(pair_.reader, options);
  manager.add("nobody", nobody);
  std::error_code ec;
  const endpoint none = manager.wait_active("nobody", {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  ASSERT_EQ(attempts.size(), 4U);
  EXPECT_GE(attempts[1] - attempts[0], 10ms);
  EXPECT_GE(attempts[2] - attempts[1], 20ms);
  EXPECT_LT(attempts[2] - attempts[1], 30ms);
  EXPECT_GE(attempts[3] - attempts[2], 40ms);
  EXPECT_EQ(manager.status("nobody")->state, connection_state::failed);
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::failed, &managed_peer::state), 1);
  EXPECT_THROW(manager.wait_active("nobody"), ucx::error);
}

TEST_F(ConnectionManager, DelaysVaryWithinTheJitter) {
  connection_manager_options options = quick();
  options.reconnect.jitter = 0.5;
  options.reconnect.factor = 1;
  options.reconnect.max_attempts = 20;
  std::vector<std::chrono::nanoseconds> attempts;
  options.on_attempt = [&](const managed_peer&) {
    attempts.push_back(pair_.network.now().time_since_epoch());
    return attempts.size() < 15;
  };
  connection_manager manager(pair_.reader, options);
  manager.add("nobody", nobody);
  std::error_code ec;
  const endpoint none = manager.wait_active("nobody", {}, ec);
  ASSERT_EQ(attempts.size(), 15U);
  auto shortest = attempts[1] - attempts[0];
  auto longest = shortest;
  for (std::size_t i = 2; i < attempts.size(); ++i) {
    shortest = std::min(shortest, attempts[i] - attempts[i - 1]);
    longest = std::max(longest, attempts[i] - attempts[i - 1]);
  }
  EXPECT_GE(shortest, 5ms);
  EXPECT_LE(longest, 20ms) << "with the attempt itself";
  EXPECT_GT(longest - shortest, 1ms);
}

TEST_F(ConnectionManager, AsksBeforeTheFirstAttempt) {
  const listener door(pair_.owner, any_port);
  bool wanted = false;
  int asked = 0;
  connection_manager_options options = quick();
  options.on_attempt = [&](const managed_peer& peer) {
    EXPECT_EQ(peer.attempts, 0U);
    ++asked;
    return wanted;
  };
  connection_manager manager(pair_.reader, options);
  manager.add("owner", door.address());
  std::error_code ec;
  const endpoint none = manager.wait_active("owner", {}, ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(manager.status("owner")->state, connection_state::failed);
  EXPECT_EQ(pair_.owner.connections(), 0U);
  wanted = true;
  manager.reconnect("owner");
  EXPECT_EQ(manager.wait_active("owner").state(), connection_state::active);
  EXPECT_EQ(asked, 2);
}

TEST_F(ConnectionManager, AsksBeforeEachFurtherAttempt) {
  int asked = 0;
  connection_manager_options options = quick();
  options.on_attempt = [&](const managed_peer&) { return ++asked < 3; };
  connection_manager manager(pair_.reader, options);
  manager.add("nobody", nobody);
  std::error_code ec;
  const endpoint none = manager.wait_active("nobody", {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_EQ(asked, 3);
}

TEST_F(ConnectionManager, AsksNothingAboutAPeerThatIsGone) {
  int asked = 0;
  connection_manager_options options = quick();
  options.on_attempt = [&](const managed_peer&) { return ++asked > 0; };
  connection_manager manager(pair_.reader, options);
  manager.add("gone", nobody);
  manager.close("gone", close_mode::abort);
  pass(20ms);
  EXPECT_EQ(asked, 0);
  manager.add("gone", nobody);
  manager.close("gone", close_mode::abort);
  manager.add("gone", nobody);
  pass(1ms);
  EXPECT_EQ(asked, 1) << "about the one that is there";
}

TEST_F(ConnectionManager, AsksOnceWhereReconnectOvertakesTheQuestion) {
  int asked = 0;
  connection_manager_options options = quick();
  options.on_attempt = [&](const managed_peer&) { return ++asked == 0; };
  connection_manager manager(pair_.reader, options);
  manager.add("nobody", nobody);
  manager.reconnect("nobody");
  manager.reconnect("nobody");
  pass(20ms);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(manager.status("nobody")->state, connection_state::failed);
}

TEST_F(ConnectionManager, MakesALostConnectionAgain) {
  std::optional<listener> door(std::in_place, pair_.owner, any_port);
  const socket_address where = door->address();
  std::vector<connection_state> states;
  connection_manager_options options = quick();
  options.on_change = [&](const managed_peer& peer) { states.push_back(peer.state); };
  connection_manager manager(pair_.reader, options);
  manager.add("owner", where);
  const std::uint64_t first = manager.wait_active("owner").id();
  door->close(close_mode::flush);
  pass(5ms);
  EXPECT_EQ(manager.status("owner")->state, connection_state::connecting);
  EXPECT_EQ(manager.status("owner")->failure, errc::closed_by_peer);
  EXPECT_EQ(manager.find("owner").state(), connection_state::closed);
  door.emplace(pair_.owner, where);
  EXPECT_NE(manager.wait_active("owner").id(), first);
  EXPECT_EQ(manager.status("owner")->attempts, 0U);
  pass(1ms);
  using enum connection_state;
  EXPECT_EQ(states, (std::vector{active, connecting, active}));
}

TEST_F(ConnectionManager, PeerThatDropsEachConnectionHasFailed) {
  std::vector<endpoint> accepted;
  const listener door(pair_.owner, any_port, [&](connection_request request) {
    accepted.emplace_back(pair_.owner, std::move(request));
  });
  connection_manager_options options = quick();
  options.on_change = [&](const managed_peer& peer) {
    if (peer.state == connection_state::active) accepted.back().close(close_mode::abort);
  };
  connection_manager manager(pair_.reader, options);
  manager.add("fickle", door.address());
  for (int i = 0; i < 100 && manager.status("fickle")->state != connection_state::failed; ++i) {
    pass(10ms);
  }
  EXPECT_EQ(manager.status("fickle")->state, connection_state::failed);
  EXPECT_EQ(manager.status("fickle")->failure, std::errc::connection_reset);
  EXPECT_EQ(accepted.size(), 1 + options.reconnect.max_attempts);
}

TEST_F(ConnectionManager, WaitsNoLongerThanAClockCanTell) {
  connection_manager_options options = quick();
  options.reconnect.first_delay = std::chrono::nanoseconds::max();
  options.reconnect.max_delay = std::chrono::nanoseconds::max();
  options.reconnect.jitter = 1;
  connection_manager manager(pair_.reader, options);
  manager.add("nobody", nobody);
  pass(1s);
  EXPECT_EQ(manager.status("nobody")->attempts, 1U);
  EXPECT_EQ(manager.status("nobody")->state, connection_state::connecting);
}

TEST_F(ConnectionManager, GoesOnWhereAllOperationsAreCanceled) {
  connection_manager manager(pair_.reader, quick());
  manager.add("nobody", nobody);
  for (int i = 0; i < 20; ++i) {
    pass(5ms);
    EXPECT_EQ(pair_.reader.cancel_all(), 0U);
  }
  std::error_code ec;
  const endpoint none = manager.wait_active("nobody", {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_EQ(manager.status("nobody")->attempts, 4U);
}

TEST_F(ConnectionManager, HandlersThatThrowAreReported) {
  int reports = 0;
  worker_options told;
  told.on_exception = [&](const std::exception_ptr&) { ++reports; };
  worker careful(pair_.reader_context, told);
  connection_manager_options options = quick();
  options.on_change = [](const managed_peer&) { throw std::runtime_error("a change"); };
  options.on_attempt = [](const managed_peer&) -> bool { throw std::runtime_error("an attempt"); };
  connection_manager manager(careful, options);
  manager.add("nobody", nobody);
  std::error_code ec;
  const endpoint none = manager.wait_active("nobody", {}, ec);
  EXPECT_EQ(ec, errc::canceled);
  EXPECT_EQ(manager.status("nobody")->attempts, 0U) << "who throws does not want to go on";
  manager.close();
  EXPECT_GE(reports, 2);
}

TEST_F(ConnectionManager, ReconnectsAtOnceWhereThatIsWanted) {
  connection_manager_options options = quick();
  options.reconnect.max_attempts = 0;
  connection_manager manager(pair_.reader, options);
  manager.add("late", nobody);
  std::error_code ec;
  const endpoint none = manager.wait_active("late", {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  const listener door(pair_.owner, nobody);
  manager.reconnect("late");
  EXPECT_EQ(manager.wait_active("late").state(), connection_state::active);
}

TEST_F(ConnectionManager, CloseOfOnePeerForgetsIt) {
  const listener door(pair_.owner, any_port);
  connection_manager manager(pair_.reader, quick());
  manager.add("a", door.address());
  manager.add("b", door.address());
  const endpoint kept = manager.wait_active("a");
  const endpoint other = manager.wait_active("b");
  manager.close("a", close_mode::flush);
  manager.close("nobody", close_mode::flush);
  EXPECT_EQ(kept.state(), connection_state::closed);
  EXPECT_FALSE(manager.status("a"));
  EXPECT_EQ(std::ranges::count(manager.peers(), connection_state::active, &managed_peer::state), 1);
  pass(200ms);
  EXPECT_EQ(manager.peers().size(), 1U) << "it is not made again";
  EXPECT_EQ(other.state(), connection_state::active);
}

TEST_F(ConnectionManager, APeerIsClosingUntilItIsForgotten) {
  const listener door(pair_.owner, any_port);
  for (const bool all : {false, true}) {
    std::vector<connection_state> told;
    std::optional<connection_manager> manager;
    connection_manager_options options = quick();
    options.on_change = [&](const managed_peer& peer) {
      told.push_back(peer.state);
      if (peer.state != connection_state::closing) return;
      EXPECT_EQ(manager->status("owner")->state, connection_state::closing);
      EXPECT_EQ(
          std::ranges::count(manager->peers(), connection_state::closing, &managed_peer::state), 1);
      EXPECT_EQ(manager->find("owner").state(), connection_state::closed);
      std::error_code ec;
      const endpoint none = manager->wait_active("owner", {}, ec);
      EXPECT_EQ(ec, errc::closed);
      manager->reconnect("owner", ec);
      EXPECT_EQ(ec, errc::closed);
      if (!all) {
        manager->add("owner", door.address(), ec);
        EXPECT_EQ(ec, errc::already_exists);
      }
    };
    manager.emplace(pair_.reader, options);
    manager->add("owner", door.address());
    manager->wait_active("owner");
    pair_.reader.progress();
    all ? manager->close() : manager->close("owner", close_mode::flush);
    EXPECT_FALSE(manager->status("owner"));
    pair_.reader.progress();
    using enum connection_state;
    EXPECT_EQ(told, (std::vector{active, closing, closed})) << all;
    manager->close(close_mode::abort);
    EXPECT_EQ(told.size(), 3U);
  }
}

TEST_F(ConnectionManager, ConnectsFromTheAddressThatWasChosen) {
  const listener door(pair_.owner, any_port);
  connection_manager_options options = quick();
  options.local = socket_address("[::1]:0");  // of another family than the peer's
  connection_manager manager(pair_.reader, options);
  manager.add("owner", door.address());
  std::error_code ec;
  const endpoint none = manager.wait_active("owner", {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

TEST_F(ConnectionManager, MayEndAtAnyTime) {
  const listener door(pair_.owner, any_port);
  for (int rounds = 0; rounds < 40; ++rounds) {
    connection_manager manager(pair_.reader, quick());
    manager.add("there", door.address());
    manager.add("not there", nobody);
    manager.add("named", {"127.0.0.1", door.address().port()});
    for (int i = 0; i < rounds; ++i) pair_.reader.progress();
  }
  EXPECT_EQ(pair_.reader.connections(), 0U);
}

TEST_F(ConnectionManager, WaitHasADeadline) {
  pair_.owner_process.stop();
  connection_manager_options options = quick();
  options.connect_timeout = 10s;
  connection_manager manager(pair_.reader, options);
  manager.add("silent", pair_.owner.address());
  std::error_code ec;
  const endpoint none = manager.wait_active("silent", {.timeout = 20ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  manager.close(close_mode::abort);
  pair_.owner_process.resume();
}

}  // namespace
}  // namespace ucx::test
