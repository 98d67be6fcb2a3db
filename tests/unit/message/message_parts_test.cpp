#include "ucx/receive_target.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "support/simulated/simulated_messages.hpp"
#include "wire/parts_table.hpp"

namespace ucx::test {
namespace {

using spans = std::vector<std::span<const std::byte>>;

/// Content whose parts have these lengths, each with its own pattern.
struct content {
  explicit content(const std::vector<std::size_t>& lengths) {
    for (const std::size_t length : lengths) memory.push_back(pattern(length, memory.size()));
    for (const auto& each : memory) parts.emplace_back(each);
  }
  bool is(const message_parts& received) const {
    if (received.size() != memory.size()) return false;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (received[i].size() != memory[i].size() || !holds_pattern(received[i], i)) return false;
    }
    return true;
  }
  std::vector<std::vector<std::byte>> memory;
  spans parts;
};

std::vector<std::byte> encoded(const content& what) {
  std::vector<std::byte> all;
  detail::encode_parts_table(what.parts, all);
  for (const auto& each : what.memory) all.insert(all.end(), each.begin(), each.end());
  return all;
}

TEST(MessageParts, ArriveAsManyAndAsLongAsTheyWere) {
  simulated_messages both;
  const std::vector<std::size_t> many(5000, 3);
  for (const auto& lengths : {std::vector<std::size_t>{},
                              {0},
                              {1, 0, 300000, 5},
                              {200, 300},
                              {1U << 20U, 1U << 20U},
                              many}) {
    const content sent(lengths);
    message_parts received;
    request receive = both.receiver().start_receive(1, {received, 4U << 20U});
    both.sender.send(1, payload::parts(sent.parts));
    ASSERT_FALSE(both.outcome(receive));
    EXPECT_TRUE(sent.is(received)) << lengths.size();
  }
}

TEST(MessageParts, AreReceivedOfOnePeerAndByHand) {
  simulated_messages both;
  const content sent({10, 20});
  endpoint back = both.back();
  message_parts received;
  request receive = back.start_receive(1, {received, 1000});
  both.sender.send(1, payload::parts(sent.parts));
  ASSERT_FALSE(both.outcome(receive));
  EXPECT_TRUE(sent.is(received));
  both.sender.send(2, payload::parts(sent.parts));
  message taken = both.take(2);
  message_parts by_hand;
  request second = taken.start_receive({by_hand, 1000});
  ASSERT_FALSE(both.outcome(second));
  EXPECT_TRUE(sent.is(by_hand));
  const message_parts moved = std::move(by_hand);
  EXPECT_TRUE(sent.is(moved));
}

TEST(MessageParts, MoreThanTheReceiverAllowsAreTruncated) {
  simulated_messages both;
  const content sent({100, 100});
  message_parts received;
  request receive = both.receiver().start_receive(1, {received, 223});
  both.sender.send(1, payload::parts(sent.parts));
  EXPECT_EQ(both.outcome(receive), errc::message_truncated);
  EXPECT_EQ(receive.received().length, 224U);  // eight for each, and eight for both
  EXPECT_TRUE(received.empty());
}

TEST(MessageParts, MessageThatIsNoneIsAnErrorAndTheConnectionLives) {
  simulated_messages both;
  message_parts received;
  for (const std::size_t size : {0U, 7U, 8U, 100U}) {
    request receive = both.receiver().start_receive(1, {received, 1000});
    both.sender.send(1, pattern(size, 1));
    EXPECT_EQ(both.outcome(receive), errc::protocol_error) << size;
    EXPECT_TRUE(received.empty());
  }
  const content sent({5});
  request receive = both.receiver().start_receive(1, {received, 1000});
  both.sender.send(1, payload::parts(sent.parts));
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(sent.is(received));
}

TEST(MessageParts, CopiedOnesMayGoWhenTheCallReturns) {
  simulated_messages both;
  content sent({100, 1U << 20U});
  const content expected({100, 1U << 20U});
  request send =
      both.sender.start_send(1, payload::parts(sent.parts), {.memory = send_memory::copied});
  for (auto& each : sent.memory) each.assign(each.size(), std::byte{});
  message_parts received;
  request receive = both.receiver().start_receive(1, {received, 4U << 20U});
  ASSERT_FALSE(both.outcome(receive));
  ASSERT_FALSE(both.outcome(send));
  EXPECT_TRUE(expected.is(received));
}

TEST(PartsTable, RefusesEveryBeginningAndMore) {
  const std::vector<std::byte> whole = encoded(content({3, 0, 9}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(detail::decode_parts(cut)) << size;
  }
  std::vector<std::byte> more = whole;
  more.push_back(std::byte{});
  EXPECT_FALSE(detail::decode_parts(more));
}

TEST(PartsTable, FlippedBitsNeverReachOutside) {
  const std::vector<std::byte> whole = encoded(content({3, 0, 9}));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto parts = detail::decode_parts(flipped);
    if (!parts) continue;
    for (const std::span<std::byte>& each : *parts) {
      EXPECT_GE(each.data(), flipped.data());
      EXPECT_LE(each.data() + each.size(), flipped.data() + flipped.size());
    }
  }
}

TEST(PartsTable, HugeCountsAndLengthsAreRefused) {
  for (const std::byte high : {std::byte{0x20}, std::byte{0x80}, std::byte{0xff}}) {
    std::vector<std::byte> count = encoded(content({}));
    count[7] = high;
    EXPECT_FALSE(detail::decode_parts(count));
    std::vector<std::byte> length = encoded(content({1}));
    length[15] = high;
    EXPECT_FALSE(detail::decode_parts(length));
  }
}

}  // namespace
}  // namespace ucx::test
