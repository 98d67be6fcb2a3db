// Memory of another process, read where it lies: what its owner does meanwhile.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/hex.hpp"
#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/access.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t size = std::size_t{1} << 20U;

class LentRegion : public testing::Test {
 protected:
  static context_options with_cma() {
    context_options options;
    options.transports = {"tcp", "cma"};
    return options;
  }
  static constexpr const char* forbidden = "the system lets no process read another one";
  static bool is_readable(const remote_region& region) {
    return region.transfer_method() == transfer_method::cma;
  }
  /// What the peer lends now.
  remote_region borrow() {
    const remote_descriptor lent =
        remote_descriptor::decode(from_hex(owner_.ask("lend " + std::to_string(size) + " 3")));
    EXPECT_NE(lent.cma, cma_handle());
    return remote_region(connection_, lent);
  }

  test_peer owner_{"lent"};
  context context_{with_cma()};
  worker worker_{context_, {.progress = progress_mode::sleeping_thread}};
  endpoint connection_{worker_, owner_.listen()};
  std::vector<std::byte> into_ = std::vector<std::byte>(size);
};

TEST_F(LentRegion, IsReadWhileItsOwnerIsStopped) {
  remote_region region = borrow();
  if (!is_readable(region)) GTEST_SKIP() << forbidden;
  owner_.process().stop();
  region.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_, 3));
  owner_.process().resume();
}

// A reader gets what was there before the owner took it back, or an error; never what the owner
// has written since, and never a part of both.
TEST_F(LentRegion, IsNeverReadAfterItWasTakenBack) {
  for (int round = 0; round < 40; ++round) {
    remote_region region = borrow();
    if (!is_readable(region)) GTEST_SKIP() << forbidden;
    std::jthread taker([this] { owner_.ask("take_back"); });
    std::error_code ec;
    for (const clock::time_point until = clock::now() + 20s; !ec && clock::now() < until;) {
      region.read_at(0, into_, {}, ec);
      if (!ec) {
        ASSERT_TRUE(holds_pattern(into_, 3)) << "round " << round;
      }
    }
    EXPECT_EQ(ec, errc::revoked);
  }
}

TEST_F(LentRegion, OfAnOwnerThatWasKilledIsALostConnection) {
  remote_region region = borrow();
  if (!is_readable(region)) GTEST_SKIP() << forbidden;
  owner_.process().kill();
  std::error_code ec;
  for (const clock::time_point until = clock::now() + 20s; !ec && clock::now() < until;) {
    region.read_at(0, into_, {}, ec);
    if (!ec) {
      ASSERT_TRUE(holds_pattern(into_, 3));
    }
  }
  EXPECT_EQ(ec, errc::connection_reset);
}

}  // namespace
}  // namespace ucx::test
