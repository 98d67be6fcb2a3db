// What is told of connections that end.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated_messages.hpp"
#include "ucx/listener.hpp"
#include "ucx/message_handlers.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

const socket_address any_port("127.0.0.1:0");

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

}  // namespace
}  // namespace ucx::test
