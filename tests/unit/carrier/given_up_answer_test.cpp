// Memory that is withdrawn while a client over sockets does not take its answers: it is free at
// once, and the client stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "unit/carrier/wire_peer.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::opcode;

class GivenUpAnswer : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::byte reused{0xEE};
  static constexpr std::size_t memory_size = std::size_t{48} << 20U;  // no socket takes so much

  /// What it would wait for ends no test in time.
  static server_options served(const url_scheme& by) {
    server_options made = by.server();
    made.worker.heartbeat_interval = 600s;
    made.worker.heartbeat_timeout = 1200s;
    return made;
  }
  /// Asks for the whole memory so many times, and takes the first piece alone.
  static void begin_to_read(wire_peer& peer, const remote_descriptor& region, int times) {
    detail::frame asked = peer.about(region, opcode::read);
    asked.length = memory_size;
    for (int i = 0; i < times; ++i) peer.say(asked);
    const auto heard = peer.next(opcode::data);
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->said.status, 0U);
  }
  /// The peer takes what comes until so many answers were refused; nothing is what the memory has
  /// been reused for.
  static void hear_refusals(wire_peer& peer, int count) {
    for (int refused = 0; refused < count;) {
      const auto heard = peer.next(opcode::data);
      ASSERT_TRUE(heard) << "after " << refused << " refusals";
      ASSERT_EQ(std::count(heard->payload.begin(), heard->payload.end(), reused), 0);
      if (heard->said.status == 0) continue;
      EXPECT_EQ(detail::status_error(heard->said.status), errc::revoked);
      ++refused;
    }
  }

  const temporary_directory secrets_;
  const url_scheme by_{GetParam(), secrets_ / ""};
  std::vector<std::byte> memory_ = std::vector<std::byte>(memory_size, std::byte{1});
  std::optional<server> serving_{std::in_place, served(by_)};
  publication shown_ = serving_->publish("memory", std::span<std::byte>(memory_), access::read);
};

TEST_P(GivenUpAnswer, LeavesMemoryAtOnceAndAPeerThatNeverReads) {
  for (const int reads : {1, 200}) {  // far more pieces than a connection may have copies
    SCOPED_TRACE(reads);
    std::vector<std::byte> memory(memory_size, std::byte{1});
    publication shown =
        serving_->publish("short-lived", std::span<std::byte>(memory), access::read);
    wire_peer peer(url(serving_->url()), by_);
    peer.greet(1);
    peer.greet_server();
    const auto region = peer.open("short-lived", access::read);
    ASSERT_TRUE(region);
    begin_to_read(peer, *region, reads);
    shown.close();
    std::fill(memory.begin(), memory.end(), reused);
    EXPECT_EQ(serving_->statistics().clients, 1U) << "it has lost its connection";
    hear_refusals(peer, reads);
    EXPECT_TRUE(peer.open("memory", access::read));
    peer.die(false);
    EXPECT_TRUE(soon([&] { return serving_->statistics().clients == 0; }));
  }
}

TEST_P(GivenUpAnswer, IsRevokedForAReaderThatGoesOn) {
  client_options options{.context = by_.context()};
  options.context.transports.clear();  // the URL says it
  options.worker.progress = progress_mode::caller;
  options.worker.heartbeat_interval = 600s;
  options.worker.heartbeat_timeout = 1200s;
  client reader(url(serving_->url()), options);
  remote_region opened = reader.open("memory");
  std::vector<std::byte> into(memory_size);
  request reading = opened.start_read_at(0, into);
  EXPECT_TRUE(soon([&] {
    reader.worker().progress();
    return into.front() != std::byte{0};
  }));
  shown_.close();  // nobody drives the reader
  std::fill(memory_.begin(), memory_.end(), reused);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(std::count(into.begin(), into.end(), reused), 0);
  EXPECT_FALSE(reader.status());
  EXPECT_TRUE(reader.list().empty());
}

TEST_P(GivenUpAnswer, HoldsUpNoEndOfAServer) {
  wire_peer peer(url(serving_->url()), by_);
  peer.greet(1);
  peer.greet_server();
  const auto region = peer.open("memory", access::read);
  ASSERT_TRUE(region);
  begin_to_read(peer, *region, 3);
  std::atomic<bool> closed{false};
  std::jthread closing([&] {
    serving_->close();
    closed = true;
  });
  const bool in_time = soon([&] { return closed.load(); });
  EXPECT_TRUE(in_time);
  if (!in_time) peer.die(true);
}

INSTANTIATE_TEST_SUITE_P(Over, GivenUpAnswer, testing::Values("socket", "tls", "unix"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace ucx::test
