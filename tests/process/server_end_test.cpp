// Servers that end: one after the other while peers connect without a pause, and with clients that
// have stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// What a reset leaves of a connection that is being made ends no peer, either.
TEST(ServersThatEnd, OutliveThemInTheirProcessAndHarmNoPeer) {
  socket_address where("127.0.0.1:0");
  std::vector<std::unique_ptr<test_peer>> peers;
  for (int round = 0; round < 12; ++round) {
    server_options options;
    options.bind = to_string(where);
    ucx_server ending(options);
    where = ending.address().socket;  // the same from now on: the peers do not keep it
    while (peers.size() < 2) {
      peers.push_back(std::make_unique<test_peer>("tcp"));
      peers.back()->ask("knock " + to_string(where));
    }
    std::this_thread::sleep_for(5ms * round);
    if (round % 2 == 0) ending.close();
  }
  for (const std::unique_ptr<test_peer>& each : peers) EXPECT_TRUE(each->process().running());
}

/// A server of both families. Its clients are processes that have stopped, in the middle of reads.
class ServerOfStoppedClients : public testing::Test {
 protected:
  static constexpr std::size_t size = std::size_t{32} << 20U;
  static constexpr auto short_heartbeat = 2s;
  /// Far beyond, also where the machine is slow.
  static constexpr auto long_enough = 60s;

  void SetUp() override {
    if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
    std::error_code ec;
    start(0, ec);
    if (ec == errc::not_supported) {
      GTEST_SKIP() << "UCX " << to_string(ucx_version()) << " has no IPv6 on the loopback";
    }
    ASSERT_FALSE(ec) << ec.message();
  }

  void start(std::uint16_t port, std::error_code& ec) {
    const std::string number = std::to_string(port);
    server_options options = by_ucx({.bind = "127.0.0.1:" + number + ",[::1]:" + number});
    options.worker.heartbeat_timeout = patience(short_heartbeat);
    server_.emplace(options, ec);
  }
  std::uint16_t port() const { return server_->address().socket.port(); }

  /// Starts a client that reads without end where it says that it does; the server answers it.
  test_peer& reader(bool by_six) {
    const changed_variable family("UCX_TCP_AF_PRIO", by_six ? "inet6" : "inet");
    const changed_variable method("UCXIO_TRANSFER_METHOD", "message");
    test_peer& made = readers_.emplace_back("tcp");
    made.ask("client " + to_string(url(by_six ? "::1" : "127.0.0.1", port())));
    made.ask("open_name m read");
    return made;
  }

  std::vector<std::byte> memory_ = pattern(size);
  std::optional<server> server_;
  std::deque<test_peer> readers_;
};

TEST_F(ServerOfStoppedClients, ClosesInTimeAndMayBeMadeAnew) {
  std::optional<publication> shown = server_->publish("m", std::span(memory_), access::read);
  for (const bool by_six : {true, false, true}) {
    test_peer& each = reader(by_six);
    each.ask("churn read " + std::to_string(size / 2) + " 2");
    each.process().stop();
  }
  reader(true).process().stop();  // it has asked for nothing
  const std::uint16_t before = port();
  const auto began = std::chrono::steady_clock::now();
  server_->close();
  shown.reset();
  std::fill(memory_.begin(), memory_.end(), std::byte{0xDD});
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, long_enough);
  std::error_code ec;
  EXPECT_TRUE(soon([&] {
    start(before, ec);
    return !ec;
  })) << ec.message();
  ASSERT_FALSE(ec);
  shown = server_->publish("m", std::span(memory_), access::read);
  for (test_peer& each : readers_) each.process().resume();
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string said = readers_[i].hear();
    EXPECT_TRUE(said.starts_with("error ")) << said;
  }
  for (const bool by_six : {true, false}) {
    EXPECT_EQ(reader(by_six).ask("read 0 10 1"), "no") << "the bytes are others";
  }
}

/// A server without UCX. Its client is a process that has stopped in the middle of reads.
class StoppedClientOverSockets : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t size = std::size_t{48} << 20U;  // no socket takes so much

  /// What would wait for the client ends no test in time.
  static server_options served(const url_scheme& by) {
    server_options made = by.server();
    made.worker.heartbeat_interval = 600s;
    made.worker.heartbeat_timeout = 1200s;
    return made;
  }
  /// Starts a client that reads the memory without end, and stops it.
  void stop_reader() {
    const changed_variable token("UCXIO_TOKEN", token_.empty() ? nullptr : token_.c_str());
    reader_.emplace("tcp");
    reader_->ask("client " + serving_->url());
    reader_->ask("open_name m read");
    reader_->ask("churn read " + std::to_string(size) + " 2");
    reader_->process().stop();
  }

  const temporary_directory secrets_;
  const url_scheme by_{GetParam(), secrets_ / ""};
  const std::string token_ =
      by_.name == "tls" ? token_file(by_.context().token_file).create("reader") : std::string();
  std::vector<std::byte> memory_ = pattern(size);
  std::optional<server> serving_{std::in_place, served(by_)};
  publication shown_ = serving_->publish("m", std::span(memory_), access::read);
  std::optional<test_peer> reader_;
};

TEST_P(StoppedClientOverSockets, LeavesMemoryAndStaysConnected) {
  stop_reader();
  shown_.close();
  std::fill(memory_.begin(), memory_.end(), std::byte{0xDD});
  EXPECT_EQ(serving_->statistics().clients, 1U);
  reader_->process().resume();
  const std::string said = reader_->hear();
  EXPECT_NE(said.find(make_error_code(errc::revoked).message()), std::string::npos) << said;
  EXPECT_EQ(reader_->ask("list"), "0");
}

TEST_P(StoppedClientOverSockets, HoldsUpNoEndOfTheServer) {
  stop_reader();
  std::atomic<bool> ended{false};
  std::jthread ending([&] {
    serving_->close();
    ended = true;
  });
  EXPECT_TRUE(soon([&] { return ended.load(); }));
  reader_->process().kill();
}

INSTANTIATE_TEST_SUITE_P(By, StoppedClientOverSockets, testing::Values("socket", "unix"),
                         [](const auto& each) { return each.param; });
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(Secure, StoppedClientOverSockets, testing::Values("tls"),
                         [](const auto& each) { return each.param; });
#endif

}  // namespace
}  // namespace ucx::test
