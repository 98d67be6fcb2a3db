// Servers that end, one after the other, while peers connect without a pause.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// What a reset leaves of a connection that is being made ends no peer, either.
TEST(ServersThatEnd, OutliveThemInTheirProcessAndHarmNoPeer) {
  socket_address where("127.0.0.1:0");
  std::vector<std::unique_ptr<test_peer>> peers;
  for (int round = 0; round < 12; ++round) {
    server_options options;
    options.bind = to_string(where);
    ucx_server ending(options);
    where = ending.address().socket;  // the same from now on: the peers do not keep it
    while (peers.size() < 2) {
      peers.push_back(std::make_unique<test_peer>("tcp"));
      peers.back()->ask("knock " + to_string(where));
    }
    std::this_thread::sleep_for(5ms * round);
    if (round % 2 == 0) ending.close();
  }
  for (const std::unique_ptr<test_peer>& each : peers) EXPECT_TRUE(each->process().running());
}

}  // namespace
}  // namespace ucx::test
