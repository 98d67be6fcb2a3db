// How often opens that are under way together go to the server and back: counted, not timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t opens = 64;

/// This thread drives both sides, one of them at a time.
class OpenTrips : public testing::TestWithParam<std::string> {
 protected:
  static server_options driven_here(server_options options) {
    options.worker.progress = progress_mode::caller;
    return options;
  }
  /// Drives one side until this holds.
  static bool drive(worker& side, const std::function<bool()>& holds) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!holds() && std::chrono::steady_clock::now() < limit) side.progress();
    return holds();
  }
  /// Lets one side send what it has to say: nothing of it waits for the other.
  static void drive_until_idle(worker& side) {
    for (int idle = 0; idle < 1000; ++idle) {
      if (side.progress()) idle = 0;
    }
  }
  void drive_both(const request& until) {
    EXPECT_TRUE(drive(client_side_, [&] {
      serving_.worker().progress();
      return until.done();
    }));
    EXPECT_FALSE(until.error()) << until.description();
  }

  const temporary_directory folder_;
  const url_scheme by_{GetParam(), folder_ / ""};
  const std::vector<std::byte> bytes_ = pattern(1000);
  server serving_{driven_here(by_.server())};
  worker client_side_{context(by_.context()), {.progress = progress_mode::external}};
};

TEST_P(OpenTrips, AreNoMoreThanOneForAll) {
  const publication shown = serving_.publish("memory", std::span<const std::byte>(bytes_));
  client asking;
  drive_both(client::start_connect(client_side_, url(serving_.url()), asking));
  std::vector<remote_region> made(opens);
  std::vector<request> asked;
  const std::uint64_t before = serving_.statistics().opens;
  for (remote_region& each : made) {
    asked.push_back(asking.start_open("memory", access::read, each));
  }
  drive_until_idle(client_side_);
  EXPECT_TRUE(
      drive(serving_.worker(), [&] { return serving_.statistics().opens - before == opens; }))
      << serving_.statistics().opens << " were asked for in one go";
  drive_until_idle(serving_.worker());
  // The server says nothing more from here on.
  const auto is_done = [](const request& each) { return each.done(); };
  EXPECT_TRUE(drive(client_side_, [&] { return std::ranges::all_of(asked, is_done); }));
  for (std::size_t i = 0; i < opens; ++i) {
    EXPECT_FALSE(asked[i].error()) << asked[i].description();
    EXPECT_EQ(made[i].size(), bytes_.size());
  }
  made.clear();
  drive_both(asking.connection().start_close());
}

INSTANTIATE_TEST_SUITE_P(, OpenTrips, testing::Values("ucx", "socket", "unix"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace ucx::test
