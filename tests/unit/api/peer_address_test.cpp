// A peer's address of each kind, for an endpoint and for a manager, over the simulation.
#include "ucx/peer_address.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

TEST(PeerAddress, OfEachKindIsConnectedToAnyNumberOfTimes) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  const std::vector<peer_address> kinds{
      pair.owner.address(), door.address(), {"127.0.0.1", door.address().port()}};
  connection_manager manager(pair.reader);
  std::size_t made = 0;
  for (const peer_address& each : kinds) {
    const std::string name = std::to_string(made);
    endpoint connection(pair.reader, each);
    connection.wait_connected();
    EXPECT_EQ(connection.peer().empty(), made == 0) << "by worker address there is none";
    manager.add(name, each);
    EXPECT_EQ(manager.wait_active(name).state(), connection_state::active);
    EXPECT_EQ(connection.state(), connection_state::active);
    ++made;
  }
  EXPECT_EQ(made, 3U);
}

TEST(PeerAddress, OfNobodyIsRefusedAlikeByEndpointAndManager) {
  simulated_pair pair;
  connection_manager_options options;
  options.on_attempt = [](const managed_peer& peer) { return peer.attempts == 0; };
  connection_manager manager(pair.reader, std::move(options));
  const auto expect = [&](const peer_address& none, errc why) {
    std::error_code ec;
    const endpoint refused(pair.reader, none, {}, ec);
    EXPECT_EQ(ec, why);
    manager.add("none", none);
    manager.wait_active("none", {}, ec);
    EXPECT_EQ(ec, why);
    manager.close("none", close_mode::abort);
  };
  expect(worker_address(), errc::bad_address);
  expect(socket_address(), errc::bad_address);
  expect({"127.0.0.1", 0}, errc::bad_address);
  expect({"", 7}, errc::host_not_found);
  expect({std::string_view("node\0", 5), 7}, errc::host_not_found);
}

}  // namespace
}  // namespace ucx::test
