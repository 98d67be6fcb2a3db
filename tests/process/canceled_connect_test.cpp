// Connecting to a process that goes on, or has stopped, is given up in each of its states.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr int most_rounds = 3000;

class CanceledConnect : public testing::TestWithParam<std::string> {
 protected:
  CanceledConnect()
      : by_{GetParam(), secrets_ / ""},
        where_(peer_.ask("serve_by " + by_.name + ' ' + by_.folder.string())),
        here_(by_.context()) {}

  /// Begins to connect, and gives it up behind so many rounds of progress. Returns whether that
  /// was before its end.
  bool give_up_behind(int rounds) {
    client made;
    request connecting = client::start_connect(loop_, where_, made);
    for (int i = 0; i < rounds && !connecting.done(); ++i) loop_.progress();
    if (connecting.done()) {
      EXPECT_FALSE(connecting.error()) << connecting.description();
      return false;
    }
    connecting.cancel();
    EXPECT_TRUE(connecting.done()) << "it waits for nobody";
    EXPECT_EQ(connecting.error(), errc::canceled) << connecting.description();
    EXPECT_EQ(made.status(), errc::closed);
    return true;
  }
  template <class Condition>
  bool drives_until(Condition&& is_so) {
    return soon([&] {
      for (int i = 0; i < 100 && !is_so(); ++i) loop_.progress();
      return is_so();
    });
  }
  bool lets_go_of_all() {
    return drives_until([this] { return loop_.connections() == 0; });
  }
  void expect_that_the_server_serves() {
    client made;
    const request connecting = client::start_connect(loop_, where_, made);
    EXPECT_TRUE(drives_until([&] { return connecting.done(); }));
    EXPECT_FALSE(connecting.error()) << connecting.description();
    EXPECT_FALSE(made.status());
  }

  const temporary_directory secrets_;
  const url_scheme by_;
  test_peer peer_{"tcp"};
  const url where_;
  context here_;
  worker loop_{here_, {.progress = progress_mode::external}};
};

TEST_P(CanceledConnect, OfAServerThatGoesOnEndsInEachState) {
  int rounds = 0;
  while (rounds < most_rounds && give_up_behind(rounds)) rounds = rounds * 5 / 4 + 1;
  EXPECT_GT(rounds, 0) << "the first round does not connect";
  EXPECT_TRUE(lets_go_of_all());
  expect_that_the_server_serves();
}

TEST_P(CanceledConnect, OfAStoppedServerEndsInEachState) {
  peer_.process().stop();
  for (int rounds = 0; rounds < most_rounds; rounds = rounds * 2 + 1) {
    EXPECT_TRUE(give_up_behind(rounds)) << "a stopped process has answered";
  }
  EXPECT_TRUE(lets_go_of_all());
  peer_.process().resume();
  expect_that_the_server_serves();
}

TEST_P(CanceledConnect, OfAKilledServerEndsWithItsLoss) {
  peer_.process().stop();
  client made;
  const request connecting = client::start_connect(loop_, where_, made);
  for (int i = 0; i < most_rounds; ++i) loop_.progress();
  EXPECT_FALSE(connecting.done()) << "a stopped process has answered";
  peer_.process().kill();
  EXPECT_TRUE(drives_until([&] { return connecting.done(); }));
  EXPECT_TRUE(connecting.error() == errc::connection_reset ||
              connecting.error() == errc::connection_refused)
      << connecting.description();
  EXPECT_TRUE(lets_go_of_all());
}

std::string name_of_canceled(const testing::TestParamInfo<std::string>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(, CanceledConnect, testing::Values("ucx", "socket", "unix"),
                         name_of_canceled);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, CanceledConnect, testing::Values("tls"), name_of_canceled);
#endif

}  // namespace
}  // namespace ucx::test
