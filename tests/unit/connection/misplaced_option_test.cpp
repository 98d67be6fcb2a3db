// Options of an endpoint that can not be had of the way in which it is connected are errors, which
// name them.
#include "connection/misplaced_option.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "support/basics/mentions.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

const socket_address from_here("127.0.0.1:0");

class MisplacedOption : public testing::Test {
 protected:
  /// Connects in every way with the options that `set` makes, and returns of which ways they are
  /// refused: addresses of workers and sockets, names, requests.
  template <class Set>
  std::string refusing_ways(const std::string& option, Set set) {
    const listener door(pair_.owner, any_port, [&](connection_request request) {
      note(option, 'r', [&] { endpoint made(pair_.owner, std::move(request), set()); });
    });
    refusing_.clear();
    note(option, 'w', [&] { endpoint made(pair_.reader, pair_.owner.address(), set()); });
    note(option, 's', [&] { endpoint made(pair_.reader, door.address(), set()); });
    note(option, 'n', [&] { endpoint(pair_.reader, {"127.0.0.1", door.address().port()}, set()); });
    std::error_code ec;
    const endpoint knocking(pair_.reader, door.address(), {}, ec);
    return refusing_;
  }

  template <class Connect>
  void note(const std::string& option, char way, Connect connect) {
    try {
      connect();
    } catch (const ucx::error& failed) {
      if (failed.code() != errc::invalid_argument) return;
      EXPECT_TRUE(mentions(failed.what(), "endpoint_options::" + option)) << failed.what();
      if (refusing_.find(way) == std::string::npos) refusing_ += way;
    }
  }

  simulated_pair pair_;
  std::string refusing_;
};

TEST_F(MisplacedOption, IsRefusedByName) {
  EXPECT_EQ(refusing_ways("", [] { return endpoint_options(); }), "");
  EXPECT_EQ(
      refusing_ways("error_handling",
                    [] { return endpoint_options{.error_handling = error_handling_mode::none}; }),
      "snr");
  EXPECT_EQ(
      refusing_ways("error_handling",
                    [] { return endpoint_options{.error_handling = error_handling_mode::peer}; }),
      "");
  const endpoint watching = pair_.connect();
  EXPECT_EQ(refusing_ways("watched_by", [&] { return endpoint_options{.watched_by = &watching}; }),
            "snr");
  EXPECT_EQ(refusing_ways("local", [] { return endpoint_options{.local = from_here}; }), "wr");
  EXPECT_EQ(refusing_ways("wait", [] { return endpoint_options{.wait = connect_wait::none}; }),
            "n");
}

TEST_F(MisplacedOption, IsACodeWithoutExceptions) {
  const listener door(pair_.owner, any_port);
  std::error_code ec;
  const endpoint by_worker(pair_.reader, pair_.owner.address(), {.local = from_here}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const endpoint by_socket(pair_.reader, door.address(),
                           {.error_handling = error_handling_mode::none}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const endpoint by_name(pair_.reader, {"127.0.0.1", door.address().port()},
                         {.wait = connect_wait::none}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(by_name.state(), connection_state::closed);
}

TEST_F(MisplacedOption, LeavesARequestAsItWas) {
  std::optional<endpoint> accepted;
  const listener door(pair_.owner, any_port, [&](connection_request request) {
    std::error_code ec;
    const endpoint none(pair_.owner, std::move(request), {.local = from_here}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    accepted.emplace(pair_.owner, std::move(request));  // NOLINT(bugprone-use-after-move)
  });
  const endpoint connection(pair_.reader, door.address());
  EXPECT_TRUE(accepted);
}

TEST_F(MisplacedOption, OfAManagerIsRefusedWithThePeer) {
  connection_manager manager(pair_.reader, {.error_handling = error_handling_mode::none});
  std::error_code ec;
  manager.add("by socket", nobody, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_TRUE(manager.peers().empty());
  manager.add("by worker", pair_.owner.address());
  EXPECT_FALSE(manager.wait_active("by worker").report().watched);
  try {
    manager.add("by name", {"127.0.0.1", 7471});
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_TRUE(mentions(failed.what(), "connection_manager_options::error_handling"))
        << failed.what();
  }
}

TEST(AcceptedConnection, WaitsForHelloAsLongAsItsOptionSays) {
  simulated_pair pair;
  std::optional<endpoint> accepted;
  const listener door(pair.owner, any_port, [&](connection_request request) {
    accepted.emplace(pair.owner, std::move(request), endpoint_options{.connect_timeout = 300ms});
  });
  frame_peer peer(pair.network, "peer");
  peer.reach(door.address().port());
  EXPECT_FALSE(peer.wait([&] { return !peer.failures.empty(); }, 250ms));
  EXPECT_TRUE(peer.wait([&] { return !peer.failures.empty(); }, 100ms));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->status(), errc::timed_out);
}

}  // namespace
}  // namespace ucx::test
