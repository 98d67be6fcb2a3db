// The process that runs a function dies in it.
#include <gtest/gtest.h>

#include <system_error>

#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/rpc.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

template <class Result>
std::error_code outcome_of(typed_call<Result> call) {
  std::error_code ec;
  call.result(ec);
  return ec;
}

TEST(CallDeath, LeavesTheOutcomeUnknownOfWhatWasSentAlone) {
  test_peer callee("tcp");
  const socket_address where = callee.listen();
  EXPECT_EQ(callee.ask("serve_calls"), "add die");
  const context network(over_network());
  const worker caller(network);
  const endpoint connection(caller, where);
  const call_channel peer(connection);
  EXPECT_EQ(peer.call<int>("add", 25, 17), 42);
  EXPECT_EQ(outcome_of(peer.start_call<void>("die")), errc::call_outcome_unknown);
  const std::error_code behind = outcome_of(peer.start_call<int>("add", 1, 2));
  EXPECT_TRUE(behind);
  EXPECT_NE(behind, errc::call_outcome_unknown);
}

}  // namespace
}  // namespace ucx::test
