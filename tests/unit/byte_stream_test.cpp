// The byte stream of a connection: order without boundaries, both ways.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "support/simulated_messages.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ByteStream, HasNoBoundaries) {
  simulated_messages both;
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(100000);
  std::mt19937 random(3);
  std::size_t sent = 0;
  std::vector<request> sends;
  while (sent < bytes.size()) {
    const std::size_t size = std::min<std::size_t>(random() % 5000, bytes.size() - sent);
    sends.push_back(both.sender.start_stream_send(std::span(bytes).subspan(sent, size)));
    sent += size;
  }
  std::size_t read = 0;
  while (read < bytes.size()) {
    const bool all = random() % 2 == 0;
    std::vector<std::byte> into(std::min<std::size_t>(1 + random() % 7000, bytes.size() - read));
    const std::size_t size =
        back.stream_receive(into, all ? stream_amount::all : stream_amount::some);
    ASSERT_GT(size, 0U);
    if (all) {
      ASSERT_EQ(size, into.size());
    }
    ASSERT_TRUE(holds_pattern(std::span(into).first(size), 0, read));
    read += size;
  }
  for (request& each : sends) EXPECT_FALSE(both.outcome(each));
}

TEST(ByteStream, ReadersThatWaitAreServedInOrder) {
  simulated_messages both;
  endpoint back = both.back();
  std::vector<std::array<std::byte, 10>> into(5);
  std::vector<request> reads;
  for (auto& each : into) reads.push_back(back.start_stream_receive(each, stream_amount::all));
  both.sender.stream_send(pattern(45));
  both.settle();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(reads[i].done());
    EXPECT_TRUE(holds_pattern(into[i], 0, i * 10));
  }
  EXPECT_FALSE(reads[4].done());
  reads[4].cancel();
  EXPECT_EQ(both.outcome(reads[4]), errc::canceled);
  EXPECT_EQ(reads[4].received().length, 5U);  // and those are taken
}

TEST(ByteStream, GoesBothWaysAndBesideMessages) {
  simulated_messages both;
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(3U << 20U, 1);
  const std::vector<std::byte> others = pattern(2U << 20U, 2);
  std::vector<std::byte> into(bytes.size());
  std::vector<std::byte> back_into(others.size());
  std::vector<std::byte> tagged(1000);
  request there = both.sender.start_stream_send(bytes);
  request message_there = both.sender.start_send(4, std::span(bytes).first(1000));
  request back_again = back.start_stream_send(others);
  request reads_back = both.sender.start_stream_receive(back_into, stream_amount::all);
  request reads = back.start_stream_receive(into, stream_amount::all);
  request receives = both.receiver().start_receive(4, tagged);
  for (request* each : {&there, &message_there, &back_again, &reads_back, &reads, &receives}) {
    EXPECT_FALSE(both.outcome(*each));
  }
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_TRUE(holds_pattern(back_into, 2));
  EXPECT_TRUE(holds_pattern(tagged, 1));
}

TEST(ByteStream, NothingIsSentAndReceivedAtOnce) {
  simulated_messages both;
  EXPECT_TRUE(both.sender.start_stream_send(std::span<const std::byte>()).done());
  EXPECT_TRUE(both.sender.start_stream_receive({}, stream_amount::some).done());
  EXPECT_TRUE(both.sender.start_stream_receive({}, stream_amount::all).done());
}

TEST(ByteStream, EndsWithItsConnection) {
  simulated_messages both;
  endpoint back = both.back();
  std::vector<std::byte> into(100);
  both.sender.stream_send(pattern(40));
  request waits = back.start_stream_receive(into, stream_amount::all);
  both.settle();
  both.sender.close();
  EXPECT_EQ(both.outcome(waits), errc::closed_by_peer);
  EXPECT_EQ(waits.received().length, 40U);
}

TEST(ByteStream, OfAConnectionThatEndedGivesWhatIsLeftAndNoMore) {
  simulated_messages both;
  endpoint back = both.back();
  std::vector<std::byte> into(100);
  both.sender.stream_send(pattern(40));
  both.settle();
  both.sender.close();
  both.settle();
  request late = back.start_stream_receive(into, stream_amount::all);
  EXPECT_TRUE(late.done());
  EXPECT_EQ(both.outcome(late), errc::closed_by_peer);
  EXPECT_EQ(late.received().length, 40U);
  EXPECT_TRUE(holds_pattern(std::span(into).first(40)));
}

TEST(ByteStream, GathersRuns) {
  simulated_messages both;
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(2000000);
  const std::span<const std::byte> all(bytes);
  const std::array<std::span<const std::byte>, 4> runs{
      all.first(3), all.subspan(3, 500000), all.subspan(500003, 20), all.subspan(500023)};
  request send = both.sender.start_stream_send(runs);
  std::vector<std::byte> into(bytes.size());
  back.stream_receive(into, stream_amount::all);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(both.outcome(send));
}

}  // namespace
}  // namespace ucx::test
