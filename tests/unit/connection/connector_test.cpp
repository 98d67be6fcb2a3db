// A name with several addresses: each is tried for its share of the time, and the first that
// answers is taken.
#include "connection/connector.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/endpoint_core.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

const socket_address of_another_family("[::1]:7471");

class Connector : public testing::Test {
 protected:
  /// Tries these addresses for a second, and returns what came of it.
  std::shared_ptr<detail::connector> try_all(std::vector<socket_address> addresses) {
    const auto& worker = detail::core_access::core(pair_.reader);
    auto made = detail::connector::start(worker, detail::destination(std::move(addresses)),
                                         endpoint_options(), pair_.network.now() + 1s,
                                         [this](detail::connector&) { ++told_; });
    begin_ = pair_.network.now();
    EXPECT_TRUE(pair_.network.run_until([&] { return made->done(); }));
    pair_.network.advance(1ms);
    EXPECT_EQ(told_, 1);
    return made;
  }

  simulated_pair pair_;
  const listener door_{pair_.owner, any_port};
  detail::clock::time_point begin_;
  int told_ = 0;
};

TEST_F(Connector, GoesOnBehindAnAddressThatRefuses) {
  const auto made = try_all({nobody, door_.address()});
  EXPECT_FALSE(made->failure());
  const auto connection = made->take();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->peer(), door_.address());
}

TEST_F(Connector, GoesOnBehindAnAddressThatIsNotSpoken) {
  const auto made = try_all({of_another_family, door_.address()});
  EXPECT_FALSE(made->failure());
  ASSERT_NE(made->take(), nullptr);
}

TEST_F(Connector, LeavesTimeForThoseBehindASilentAddress) {
  fake_process& third = pair_.network.add_process("silent");
  std::error_code ec;
  const context elsewhere = detail::core_access::make_context(third.api(), {}, ec);
  ASSERT_FALSE(ec);
  const worker stopped(elsewhere);
  const listener silent(stopped, any_port);
  third.stop();
  const auto made = try_all({silent.address(), door_.address()});
  EXPECT_FALSE(made->failure());
  EXPECT_LT(pair_.network.now() - begin_, 900ms);
  const auto connection = made->take();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->peer(), door_.address());
  third.resume();
}

TEST_F(Connector, TakesTheFirstThatAnswers) {
  const listener other(pair_.owner, any_port);
  const auto made = try_all({other.address(), door_.address()});
  const auto connection = made->take();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->peer(), other.address());
  EXPECT_EQ(door_.connections(), 0U);
}

TEST_F(Connector, TellsTheFailureThatSaysMost) {
  const listener busy(pair_.owner, any_port,
                      [](connection_request request) { request.reject(errc::busy); });
  struct outcome {
    std::vector<socket_address> addresses;
    errc told;
  };
  const outcome outcomes[] = {
      {{of_another_family}, errc::not_supported},
      {{of_another_family, nobody}, errc::connection_refused},
      {{nobody, of_another_family}, errc::connection_refused},
      {{nobody, busy.address()}, errc::connection_refused},
      {{busy.address(), nobody, of_another_family}, errc::busy},
  };
  for (const outcome& each : outcomes) {
    SCOPED_TRACE(each.addresses.size());
    told_ = 0;
    const auto made = try_all(each.addresses);
    EXPECT_EQ(made->failure(), each.told) << made->failure().message();
    EXPECT_EQ(made->take(), nullptr);
  }
}

TEST_F(Connector, UnreachableSaysLittle) {
  const auto unreachable = [&] {
    pair_.network.faults().fail(call::ep_create, UCS_ERR_UNREACHABLE);
  };
  unreachable();
  std::error_code ec;
  const endpoint none(pair_.reader, door_.address(), {}, ec);
  EXPECT_EQ(ec, errc::unreachable);
  unreachable();
  const endpoint named(pair_.reader, {"127.0.0.1", door_.address().port()}, {}, ec);
  EXPECT_EQ(ec, errc::unreachable);
  unreachable();
  EXPECT_EQ(try_all({door_.address(), nobody})->failure(), errc::connection_refused);
  told_ = 0;
  unreachable();
  const auto made = try_all({door_.address(), door_.address()});
  EXPECT_FALSE(made->failure());
  EXPECT_NE(made->take(), nullptr);
}

}  // namespace
}  // namespace ucx::test
