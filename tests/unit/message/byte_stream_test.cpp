// The byte stream of a connection: order without boundaries, both ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <system_error>
#include <vector>

#include "support/simulated/simulated_messages.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// What messages with bytes UCX is given.
struct sent_messages {
  explicit sent_messages(fake_network& network) : network_(network) {
    network.watch([this](const sighting& seen) {
      if (seen.kind != call::am_send || !seen.begins || seen.size == 0) return;
      ++count;
      longest = std::max(longest, seen.header.size() + seen.size);
    });
  }
  sent_messages(const sent_messages&) = delete;
  sent_messages& operator=(const sent_messages&) = delete;
  ~sent_messages() { network_.watch({}); }

  std::size_t count = 0;
  std::size_t longest = 0;  ///< Header and all.

 private:
  fake_network& network_;
};

/// Returns whether so much of the stream is in `into`, which was blank.
bool has_come(std::span<const std::byte> into, std::size_t size) {
  return !all_bytes_are(into.subspan(size, 16), untouched);
}

/// A long send and its receive, of which a part has come, if `goes_on`.
struct long_transfer {
  long_transfer(simulated_messages& both, std::size_t size)
      : back(both.back()),
        bytes(pattern(size)),
        into(blank(size)),
        waits(back.start_stream_receive(into, stream_amount::all)),
        send(both.sender.start_stream_send(bytes)),
        goes_on(both.network().run_until([&] { return has_come(into, 1'000'000); })) {}

  endpoint back;
  std::vector<std::byte> bytes;
  std::vector<std::byte> into;
  request waits;
  request send;
  bool goes_on;
};

class ByteStream : public testing::TestWithParam<bool> {
 protected:
  static simulated_pair_options options() {
    return GetParam() ? one_host() : simulated_pair_options();
  }
  simulated_messages both{options()};
};

INSTANTIATE_TEST_SUITE_P(Routes, ByteStream, testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "one_host" : "network"; });

TEST_P(ByteStream, HasNoBoundaries) {
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

TEST_P(ByteStream, ReadersThatWaitAreServedInOrder) {
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

TEST_P(ByteStream, GoesBothWaysAndBesideMessages) {
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

TEST_P(ByteStream, NothingIsSentAndReceivedAtOnce) {
  EXPECT_TRUE(both.sender.start_stream_send(std::span<const std::byte>()).done());
  EXPECT_TRUE(both.sender.start_stream_receive({}, stream_amount::some).done());
  EXPECT_TRUE(both.sender.start_stream_receive({}, stream_amount::all).done());
}

TEST_P(ByteStream, EndsWithItsConnection) {
  endpoint back = both.back();
  std::vector<std::byte> into(100);
  both.sender.stream_send(pattern(40));
  request waits = back.start_stream_receive(into, stream_amount::all);
  both.settle();
  both.sender.close();
  EXPECT_EQ(both.outcome(waits), errc::closed_by_peer);
  EXPECT_EQ(waits.received().length, 40U);
}

TEST_P(ByteStream, OfAConnectionThatEndedGivesWhatIsLeftAndNoMore) {
  endpoint back = both.back();
  std::vector<std::byte> into(100);
  both.sender.stream_send(pattern(40));
  both.settle();
  both.sender.close();
  both.settle(2s);  // on one host UCX tells nobody that a connection was closed
  request late = back.start_stream_receive(into, stream_amount::all);
  EXPECT_TRUE(late.done());
  EXPECT_EQ(both.outcome(late), errc::closed_by_peer);
  EXPECT_EQ(late.received().length, 40U);
  EXPECT_TRUE(holds_pattern(std::span(into).first(40)));
}

TEST_P(ByteStream, GathersRuns) {
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

TEST_P(ByteStream, MemoryIsTheSendersAgainOnceItGaveUp) {
  endpoint back = both.back();
  auto bytes = std::make_unique<std::vector<std::byte>>(pattern(8U << 20U));
  request send = both.sender.start_stream_send(*bytes);
  both.settle();
  ASSERT_FALSE(send.done()) << "it is more than there is room for";
  send.cancel();
  EXPECT_EQ(both.outcome(send), errc::canceled);
  std::fill(bytes->begin(), bytes->end(), untouched);
  bytes.reset();
  const std::vector<std::byte> behind = pattern(1000, 2);
  request next = both.sender.start_stream_send(behind);
  std::vector<std::byte> into(8U << 20U);
  request receive = back.start_stream_receive(into, stream_amount::all);
  EXPECT_TRUE(both.network().run_until([&] { return next.done(); }));
  both.settle();
  receive.cancel();
  // What had gone, without a gap, and then the next.
  const auto came = static_cast<std::size_t>(receive.received().length);
  ASSERT_GT(came, behind.size());
  ASSERT_LT(came, into.size());
  const std::span<const std::byte> all = std::span(into).first(came);
  EXPECT_TRUE(holds_pattern(all.first(came - behind.size())));
  EXPECT_TRUE(holds_pattern(all.last(behind.size()), 2));
}

TEST_P(ByteStream, LongReceiveThatGivesUpLeavesTheRest) {
  long_transfer at(both, 3U << 20U);
  auto& [back, bytes, into, waits, send, goes_on] = at;
  ASSERT_TRUE(goes_on);
  ASSERT_FALSE(waits.done());
  waits.cancel();
  auto read = static_cast<std::size_t>(waits.received().length);
  EXPECT_TRUE(holds_pattern(std::span(into).first(read)));
  while (read < bytes.size()) {
    const std::size_t more =
        back.stream_receive(std::span(into).subspan(read), stream_amount::some);
    ASSERT_GT(more, 0U);
    read += more;
  }
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(both.outcome(send));
}

TEST_P(ByteStream, LongSendEndsWithItsConnection) {
  long_transfer at(both, 8U << 20U);
  ASSERT_TRUE(at.goes_on);
  at.back.close(close_mode::abort);
  EXPECT_TRUE(at.waits.error());
  EXPECT_TRUE(both.network().run_until([&] { return at.send.done(); }));
  EXPECT_TRUE(at.send.error());
  EXPECT_TRUE(holds_pattern(std::span(at.into).first(at.waits.received().length)));
}

TEST(ByteStreamOfOneHost, GoesInMessagesThatFillAnElementEach) {
  simulated_messages both(one_host());
  endpoint back = both.back();
  const std::size_t element = one_host().link.max_am_header;
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  std::vector<std::byte> into(bytes.size());
  const sent_messages sent(both.network());
  request send = both.sender.start_stream_send(bytes);
  back.stream_receive(into, stream_amount::all);
  EXPECT_FALSE(both.outcome(send));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_LE(sent.longest, element);
  EXPECT_LE(sent.count, bytes.size() / (element - 128) + 1);
}

TEST(ByteStreamOfOneHost, LeavesOneMessageAtATimeToUcx) {
  simulated_pair_options options = one_host();
  options.link.inline_limit = 0;
  simulated_messages both(options);
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  const sent_messages sent(both.network());
  request send = both.sender.start_stream_send(bytes);
  EXPECT_EQ(sent.count, 1U) << "UCX had no room for it at once, and would send others before it";
  EXPECT_TRUE(both.network().run_until([&] { return send.done(); }));
  EXPECT_GT(sent.count, 100U);
}

TEST(ByteStreamOfOneHost, LengthensMessagesWhereAnElementIsShort) {
  simulated_pair_options options = one_host();
  options.link.max_am_header = 4096;
  simulated_messages both(options);
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  std::vector<std::byte> into(bytes.size());
  const sent_messages sent(both.network());
  request send = both.sender.start_stream_send(bytes);
  back.stream_receive(into, stream_amount::all);
  EXPECT_FALSE(both.outcome(send));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_GT(sent.longest, 4096U);
}

}  // namespace
}  // namespace ucx::test
