// What is told of connections that end, or never come to be: on either side.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/frame_peer.hpp"
#include "support/simulated_address.hpp"
#include "support/simulated_messages.hpp"
#include "ucx/listener.hpp"
#include "ucx/message_handlers.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ConnectionEnd, NamesThePostsThatHadNotEnded) {
  simulated_pair pair;
  const listener door(pair.owner, any_port);
  std::optional<connection_end> told;
  endpoint connection(pair.reader, door.address(),
                      {.on_closed = [&](const connection_end& end) { told = end; }});
  std::vector<std::pair<std::uint64_t, std::error_code>> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) { ended.emplace_back(key, how); };
  connection.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> large = pattern(1U << 20U);  // waits for a receive
  std::error_code ec;
  connection.post_send(1, pattern(10), 31, ec);
  connection.post_send(2, large, 33, ec);
  connection.post_send(3, large, 32, ec);
  EXPECT_FALSE(ec);
  request with_handle = connection.start_send(4, large);
  pair.network.advance(1ms);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0], std::pair(std::uint64_t{31}, std::error_code()));
  pair.owner_process.kill();
  pair.network.run_until([&] {
    pair.reader.progress();
    return told.has_value();
  });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::connection_reset);
  EXPECT_EQ(told->unsent, (std::vector<std::uint64_t>{33, 32}));
  for (int round = 0; round < 10; ++round) pair.reader.progress();
  ASSERT_EQ(ended.size(), 3U);  // each once
  EXPECT_EQ(ended[1].second, errc::connection_reset);
  EXPECT_EQ(ended[2].second, errc::connection_reset);
  EXPECT_EQ(with_handle.error(), errc::connection_reset);
}

TEST(ConnectionEnd, OfAListenersConnectionNamesThemToo) {
  simulated_pair pair;
  std::optional<connection_end> told;
  listener_options doors;
  doors.on_closed = [&](const connection_end& end) { told = end; };
  const listener door(pair.owner, any_port, std::move(doors));
  const std::vector<std::byte> large = pattern(1U << 20U);
  {
    endpoint connection(pair.reader, door.address());
    connection.send(0xbac, {});
    EXPECT_TRUE(pair.network.run_until([&] { return pair.owner.probe(0xbac).has_value(); }));
    endpoint back = pair.owner.take(0xbac)->peer();
    std::error_code ec;
    back.post_send(2, large, 33, ec);
    EXPECT_FALSE(ec);
    pair.network.advance(1ms);
  }
  pair.network.advance(1s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::closed_by_peer);
  EXPECT_EQ(told->unsent, std::vector<std::uint64_t>{33});
}

/// Nobody but the worker holds the connection, which goes as soon as it is known to be lost.
TEST(ConnectionEnd, OfAListenersConnectionIsToldWhereNobodyHoldsIt) {
  simulated_pair pair;
  std::optional<connection_end> told;
  listener_options doors;
  doors.on_closed = [&](const connection_end& end) { told = end; };
  const listener door(pair.owner, any_port, std::move(doors));
  endpoint connection(pair.reader, door.address());
  connection.send(0xbac, {});
  EXPECT_TRUE(pair.network.run_until([&] { return pair.owner.probe(0xbac).has_value(); }));
  std::error_code ec;
  pair.owner.take(0xbac)->peer().post_send(
      2, pattern(10), 33, ec, {.memory = send_memory::copied, .until = send_until::matched});
  EXPECT_FALSE(ec);
  pair.network.advance(1ms);
  pair.reader_process.stop();
  pair.network.advance(10s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::connection_reset);
  EXPECT_EQ(told->unsent, std::vector<std::uint64_t>{33});
  pair.reader_process.resume();
}

TEST(ConnectionRefusal, IsToldToTheListenerThatHadAccepted) {
  simulated_pair pair;
  std::vector<connection_refusal> told;
  listener_options doors;
  doors.terms = connection_terms{.unique = true};
  doors.on_refused = [&](const connection_refusal& refusal) { told.push_back(refusal); };
  const listener door(pair.owner, any_port, std::move(doors));
  const endpoint first(pair.reader, door.address());
  EXPECT_TRUE(told.empty());
  std::error_code ec;
  const endpoint second(pair.reader, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  pair.network.advance(5s);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].reason, errc::already_exists);
}

TEST(ConnectionRefusal, IsToldOfPeersThatNeverSayHello) {
  simulated_pair pair;
  std::vector<connection_refusal> told;
  listener_options doors;
  doors.on_refused = [&](const connection_refusal& refusal) { told.push_back(refusal); };
  const listener door(pair.owner, any_port, std::move(doors));
  frame_peer peer(pair.network, "peer");
  peer.reach(door.address().port());
  pair.network.advance(10s);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].reason, errc::timed_out);
}

}  // namespace
}  // namespace ucx::test
