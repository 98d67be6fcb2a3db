// Servers that end, one after the other, while peers connect without a pause.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/test_peer.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class ServersThatEnd : public testing::Test {
 protected:
  /// Sees to it that two peers knock. A connection that is reset while it is made can end a process
  /// in UCX 1.22 (the peer's: ucp_worker_discard_uct_ep): others come then.
  void let_peers_knock(const socket_address& where) {
    for (std::unique_ptr<test_peer>& each : peers_) {
      if (each && each->process().running()) continue;
      each = std::make_unique<test_peer>("tcp");
      each->ask("knock " + to_string(where));
    }
  }

 private:
  std::vector<std::unique_ptr<test_peer>> peers_{2};
};

TEST_F(ServersThatEnd, OutliveThemInTheirProcess) {
  socket_address where("127.0.0.1:0");
  for (int round = 0; round < 12; ++round) {
    server_options options;
    options.bind = to_string(where);
    server ending(options);
    where = ending.address().socket;  // the same from now on: the peers do not keep it
    let_peers_knock(where);
    std::this_thread::sleep_for(5ms * round);
    if (round % 2 == 0) ending.close();
  }
}

}  // namespace
}  // namespace ucx::test
