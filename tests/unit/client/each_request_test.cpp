// Every request of a client and of a remote_file in each of its states, in virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "support/simulated/stored_files.hpp"
#include "support/transports/client_requests.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A server that has everything that a request needs.
class asked_files : public stored_files, public request_subjects {
 public:
  explicit asked_files(const link_options& link = {}, std::uint64_t seed = 1,
                       std::chrono::nanoseconds timeout = {})
      : stored_files(link, seed) {
    over = &*asking;
    each.timeout = timeout;
  }

  /// Makes everything again that the last request has used up.
  void begin() {
    std::filesystem::remove_all(folder / "made");
    folder.make("file", "content");
    open_files();
  }
  /// What the server does for a request that was given up is over then.
  void end() {
    close_files();
    std::error_code ignored;
    asking->list({}, ignored);
    asking->exists("file", {}, ignored);
    for (const char* name : {"written", "opened"}) {
      std::error_code ec = errc::busy;  // as long as the server has it for somebody
      for (int i = 0; i < rounds && ec == errc::busy; ++i) asking->remove(name, {}, ec);
    }
    for (int i = 0; i < rounds && unfinished() > 0; ++i) round();
  }
};

class EachRequest : public testing::TestWithParam<request_kind> {
 protected:
  static constexpr int states = 8;  // beyond the rounds that any of them takes

  /// `give_up` is called in each state.
  static void expect_canceled(const std::function<void(request&)>& give_up) {
    asked_files at({.latency = 2ms});
    for (int state = 0; state < states; ++state) {
      SCOPED_TRACE(state);
      at.begin();
      request asked = GetParam().start(at);
      for (int i = 0; i < state; ++i) at.round();
      give_up(asked);
      if (!GetParam().moves_bytes) {
        EXPECT_TRUE(asked.done()) << "it waits for nobody";
      }
      at.finish(asked);
      if (asked.error()) {
        EXPECT_EQ(asked.error(), errc::canceled) << asked.description();
      }
      at.end();
      EXPECT_EQ(at.unfinished(), 0U) << "the server holds nothing for it";
    }
    EXPECT_FALSE(at.asking->status());
  }
};

TEST_P(EachRequest, IsCanceledInEachState) {
  expect_canceled([](request& asked) { asked.cancel(); });
}

/// The stop is requested on another thread, before the request or while it is under way.
TEST_P(EachRequest, IsCanceledByAStopInEachState) {
  expect_canceled([](request& asked) {
    std::stop_source stop;
    asked.cancel_on(stop.get_token());
    std::thread([&stop] { stop.request_stop(); }).join();
    std::error_code ignored;
    asked.wait(ignored);
  });
  asked_files at;
  at.begin();
  std::stop_source stop;
  stop.request_stop();
  request asked = GetParam().start(at);
  asked.cancel_on(stop.get_token());
  at.finish(asked);
  at.end();
}

TEST_P(EachRequest, LooksAtNoStopBehindItsEnd) {
  std::stop_source stop;
  {
    asked_files at;
    at.begin();
    request asked = GetParam().start(at);
    asked.cancel_on(std::stop_source().get_token());
    asked.cancel_on(stop.get_token());
    at.finish(asked);
    EXPECT_FALSE(asked.error()) << asked.description();
    at.end();
  }
  stop.request_stop();
}

TEST_P(EachRequest, EndsWithItsDeadline) {
  asked_files at({}, 1, 2s);
  at.begin();
  at.served.process.stop();
  const auto start = at.served.network.now();
  request asked = GetParam().start(at);
  std::error_code ec;
  asked.wait(ec);
  if (ec) {
    EXPECT_EQ(ec, errc::timed_out) << asked.description();
    EXPECT_GE(at.served.network.now() - start, 2s);
  }
  EXPECT_LE(at.served.network.now() - start, 3s + 100ms) << "a length is waited for as well";
  at.served.process.resume();
  at.end();
  EXPECT_FALSE(at.asking->status());
}

TEST_P(EachRequest, EndsWithAServerThatIsKilled) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    asked_files at({.latency = 2ms}, static_cast<std::uint64_t>(state) + 1);
    at.begin();
    request asked = GetParam().start(at);
    for (int i = 0; i < state; ++i) at.round();
    at.served.process.kill();
    std::error_code ec;
    asked.wait(ec);
    if (ec) {
      EXPECT_EQ(ec, errc::connection_reset);
    }
    at.asking->list({}, ec);
    EXPECT_EQ(ec, errc::connection_reset);
    // A file that is closed is not closed again, and a write that failed is not synced.
    const bool is_over = !at.opened.is_open() || std::string(GetParam().name) == "sync";
    { const remote_file gone = std::move(at.made_file); }
    request further = GetParam().start(at);
    further.wait(ec);
    if (!is_over) {
      EXPECT_EQ(ec, errc::connection_reset) << further.description();
    }
  }
}

std::string name_of_request(const testing::TestParamInfo<request_kind>& each) {
  return each.param.name;
}

INSTANTIATE_TEST_SUITE_P(OfClient, EachRequest, testing::ValuesIn(requests_of_client()),
                         name_of_request);
INSTANTIATE_TEST_SUITE_P(OfFile, EachRequest, testing::ValuesIn(requests_of_file()),
                         name_of_request);

/// A file keeps the connection.
class EachClientRequest : public EachRequest {};

TEST_P(EachClientRequest, EndsWithItsClient) {
  asked_files at;
  at.begin();
  at.opened.close();
  at.served.process.stop();
  request asked = GetParam().start(at);
  at.asking.reset();
  EXPECT_TRUE(asked.done());
  EXPECT_EQ(asked.error(), errc::closed);
  at.served.process.resume();
}

INSTANTIATE_TEST_SUITE_P(, EachClientRequest, testing::ValuesIn(requests_of_client()),
                         name_of_request);

}  // namespace
}  // namespace ucx::test
