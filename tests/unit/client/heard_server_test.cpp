// Whether a client's server is there still: what client::shared() asks, in virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

#include "client/client_core.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A client that has not heard of its server for a while, unless a test says otherwise.
class HeardServer : public testing::Test {
 protected:
  detail::client_core& core() { return *detail::core_access::core(asking_); }
  std::uint64_t sent() { return served_.client_process().count(call::am_send); }

  simulated_server served_;
  client asking_ = served_.connect();
};

TEST_F(HeardServer, IsAskedOnceWhereItAnswers) {
  served_.network.advance(1min);
  const std::uint64_t before = sent();
  const std::uint64_t requests = asking_.statistics().requests;
  EXPECT_TRUE(core().hear());
  EXPECT_EQ(sent(), before + 1);
  EXPECT_EQ(asking_.statistics().requests, requests) << "it is no question to the server's names";
  EXPECT_TRUE(core().hear());
  EXPECT_EQ(sent(), before + 1) << "it has answered a moment ago";
  served_.network.advance(20ms);
  EXPECT_TRUE(core().hear());
  EXPECT_EQ(sent(), before + 2);
}

TEST_F(HeardServer, IsNotAskedWhereItHasJustAnswered) {
  asking_.list();
  const std::uint64_t before = sent();
  EXPECT_TRUE(core().hear());
  EXPECT_EQ(sent(), before);
}

TEST_F(HeardServer, IsLostAfterTheHeartbeatWhereItIsSilent) {
  served_.network.advance(1min);
  served_.process.stop();
  const auto begin = served_.network.now();
  const auto heard = core().hear();
  const auto took = served_.network.now() - begin;
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.why().code, errc::connection_reset);
  EXPECT_NE(heard.why().text.find("sign of life"), std::string::npos) << heard.why().text;
  EXPECT_LE(took, worker_options().heartbeat_timeout + 1s);
  EXPECT_EQ(asking_.status(), errc::connection_reset);
  const auto again = core().hear();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.why().code, errc::connection_reset);
  served_.process.resume();
}

TEST_F(HeardServer, IsLostWhereItHasEndedMeanwhile) {
  served_.network.advance(1min);
  served_.made.reset();
  const auto heard = core().hear();
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.why().code, errc::connection_reset);
}

TEST_F(HeardServer, IsNotWaitedForInAHandler) {
  served_.network.advance(1min);
  served_.process.stop();
  bool heard = false;
  asking_.worker().post([&] { heard = static_cast<bool>(core().hear()); });
  const auto begin = served_.network.now();
  asking_.worker().progress();
  EXPECT_TRUE(heard);
  EXPECT_LT(served_.network.now() - begin, 1s);
  served_.process.resume();
}

// Whoever waits in a handler keeps that worker from its rounds.
TEST_F(HeardServer, IsNotWaitedForInAHandlerOfAnotherWorker) {
  served_.network.advance(1min);
  served_.process.stop();
  const std::uint64_t before = sent();
  bool heard = false;
  served_.made->worker().post([&] { heard = static_cast<bool>(core().hear()); });
  const auto begin = served_.network.now();
  served_.made->worker().progress();
  EXPECT_TRUE(heard);
  EXPECT_EQ(sent(), before);
  EXPECT_LT(served_.network.now() - begin, 1s);
  served_.process.resume();
}

}  // namespace
}  // namespace ucx::test
