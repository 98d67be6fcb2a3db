// A process whose network is its loopback device and nothing else, in a network namespace of its
// own: what is not there is told from what does not answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/process/own_namespace.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

TEST(Unreachable, IsAnAddressWithoutARoute) {
  const own_namespace network({"--net"});
  if (!network.why_not().empty()) GTEST_SKIP() << network.why_not();
  test_peer alone(
      child_process(own_namespace::program,
                    network.line({sibling_program("ucxio-test-peer"), "alone", "sleeping"})));
  const auto failure = [](errc code) {
    return testing::StartsWith("error " + std::to_string(make_error_code(code).value()) + " ");
  };
  EXPECT_THAT(alone.try_to("connect 10.0.0.1:7471"), failure(errc::unreachable));
  EXPECT_THAT(alone.try_to("connect 127.0.0.1:7471"), failure(errc::connection_refused));
  // Its own addresses it reaches.
  const std::string own = to_string(alone.listen());
  EXPECT_EQ(alone.ask("connect " + own), "");
}

}  // namespace
}  // namespace ucx::test
