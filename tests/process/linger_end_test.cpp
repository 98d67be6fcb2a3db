// Programs that end while connections of theirs linger.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(LingeringConnections, LeaveInOrderWhenTheirProgramEnds) {
  const std::vector<std::byte> bytes(1000, std::byte{'x'});
  ucx_server served;
  const publication name = served.publish("x", std::span<const std::byte>(bytes));
  for (const std::string also : {"", "until_exit "}) {
    test_peer reader("tcp");
    EXPECT_EQ(reader.ask("glance " + name.url()), "120");
    EXPECT_EQ(served.statistics().clients, 1U);
    // A static object's stream, which goes after the connections that linger have gone.
    if (!also.empty()) reader.ask(also + name.url());
    reader.say("quit");
    EXPECT_EQ(reader.process().wait(30s), 0);
    EXPECT_TRUE(soon([&] { return served.statistics().clients == 0; }));
  }
}

TEST(LingeringConnections, HoldUpNoProgramWhoseServerIsStopped) {
  test_peer server("tcp");
  const std::string where = server.ask("serve");
  server.ask("publish x 1000 1");
  test_peer reader("tcp");
  reader.ask("glance " + where + "/x");
  server.process().stop();
  reader.say("quit");
  EXPECT_EQ(reader.process().wait(30s), 0);
  server.process().resume();
}

}  // namespace
}  // namespace ucx::test
