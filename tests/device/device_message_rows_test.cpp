// What conformance asks of messages (rows C1 to C22 of docs/explanation/comparisons.md), between
// memory of every two kinds. What the driver copies is counted in device_message_test.cpp.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t row_sizes[] = {0, 1, 1024, 2048, mib, 4 * mib};

/// The sender's kind, and the receiver's.
class DeviceMessageRows : public testing::TestWithParam<std::tuple<memory_kind, memory_kind>> {
 protected:
  static message_pair_options over_tcp() {
    message_pair_options options;
    options.over = route::tcp_by_listener;
    return options;
  }
  static memory_kind there() { return std::get<0>(GetParam()); }
  static memory_kind here() { return std::get<1>(GetParam()); }
  std::error_code outcome(request& waited) {
    EXPECT_TRUE(pair_.until([&] { return waited.done(); }));
    return waited.error();
  }
  endpoint& sender() { return *pair_.sender; }
  worker& receiver() { return pair_.receiver(); }

  const cuda_program program_;
  message_pair pair_{over_tcp()};
};

TEST_P(DeviceMessageRows, AreReceivedByTagAndMask) {
  for (const std::size_t size : row_sizes) {
    SCOPED_TRACE(size);
    kind_memory from(there(), size + 1, size);
    kind_memory into(here(), size + 1);
    request receive =
        receiver().start_receive({size << 8U, ~std::uint64_t{0xff}}, into.bytes().first(size));
    request send = sender().start_send((size << 8U) + 7, from.bytes().first(size));
    ASSERT_FALSE(outcome(send));
    ASSERT_FALSE(outcome(receive));
    EXPECT_EQ(receive.received().length, size);
    EXPECT_TRUE(into.holds(size, size));
  }
}

TEST_P(DeviceMessageRows, AreReceivedFromAnybodyAndFromOnePeer) {
  endpoint back = pair_.back();
  for (const std::size_t size : row_sizes) {
    SCOPED_TRACE(size);
    kind_memory from(there(), size + 1, 1);
    kind_memory into(here(), size + 1);
    request from_any = pair_.sender_side().start_receive(5, into.bytes().first(size));
    request send = back.start_send(5, from.bytes().first(size));
    ASSERT_FALSE(outcome(from_any));
    ASSERT_FALSE(outcome(send));
    EXPECT_TRUE(into.holds(1, size));
    from.fill(2);
    request again = sender().start_send(6, from.bytes().first(size));
    request from_one = back.start_receive(6, into.bytes().first(size));
    ASSERT_FALSE(outcome(from_one));
    ASSERT_FALSE(outcome(again));
    EXPECT_TRUE(into.holds(2, size));
  }
}

TEST_P(DeviceMessageRows, AreTakenAndReceivedByTheirHandle) {
  for (const std::size_t size : row_sizes) {
    SCOPED_TRACE(size);
    kind_memory from(there(), size + 1, 2);
    kind_memory into(here(), size + 1);
    request send = sender().start_send(1, from.bytes().first(size));
    message taken = pair_.take(1);
    EXPECT_EQ(taken.length(), size);
    request receive = taken.start_receive(into.bytes().first(size));
    EXPECT_FALSE(outcome(receive));
    EXPECT_FALSE(outcome(send));
    EXPECT_TRUE(into.holds(2, size));
  }
}

TEST_P(DeviceMessageRows, TellTheirLengthWhereThereIsLessRoomOrMore) {
  for (const std::size_t size : {std::size_t{1000}, mib}) {
    kind_memory from(there(), size, 3);
    kind_memory into(here(), 999, 4);
    request receive = receiver().start_receive(1, into.bytes());
    request send = sender().start_send(1, from.bytes());
    EXPECT_EQ(outcome(receive), errc::message_truncated);
    EXPECT_EQ(receive.received().length, size);
    EXPECT_TRUE(into.holds(4));  // untouched
    outcome(send);
    kind_memory more(here(), size + 10);
    request longer = receiver().start_receive(2, more.bytes());
    request again = sender().start_send(2, from.bytes());
    EXPECT_FALSE(outcome(longer));
    EXPECT_FALSE(outcome(again));
    EXPECT_EQ(longer.received().length, size);
    EXPECT_TRUE(more.holds(3, size));
  }
}

TEST_P(DeviceMessageRows, GoBothWaysAsAStreamOfBytes) {
  endpoint back = pair_.back();
  kind_memory from(there(), mib, 5);
  kind_memory into(here(), mib);
  request sent = sender().start_stream_send(from.bytes());
  request received = back.start_stream_receive(into.bytes(), stream_amount::all);
  EXPECT_FALSE(outcome(received));
  EXPECT_FALSE(outcome(sent));
  EXPECT_TRUE(into.holds(5));
}

TEST_P(DeviceMessageRows, AreGatheredAndScattered) {
  kind_memory from(there(), 300'000, 6);
  kind_memory into(here(), 300'000);
  const auto pieces = [](std::span<std::byte> whole) {
    return std::vector<std::span<std::byte>>{whole.first(1), whole.subspan(1, 99'999),
                                             whole.subspan(100'000)};
  };
  const std::vector<std::span<std::byte>> sent = pieces(from.bytes());
  const std::vector<std::span<const std::byte>> gathered(sent.begin(), sent.end());
  const std::vector<std::span<std::byte>> scattered = pieces(into.bytes());
  request receive = receiver().start_receive(1, scattered);
  request send = sender().start_send(1, gathered);
  EXPECT_FALSE(outcome(receive));
  EXPECT_FALSE(outcome(send));
  EXPECT_TRUE(into.holds(6));
}

TEST_P(DeviceMessageRows, ThatAreCopiedAreDoneAtOnce) {
  for (const std::size_t size : {std::size_t{1000}, mib}) {
    kind_memory from(there(), size, 7);
    kind_memory into(here(), size);
    request send = sender().start_send(1, from.bytes(), {.memory = send_memory::copied});
    from.fill(8);
    request receive = receiver().start_receive(1, into.bytes());
    EXPECT_FALSE(outcome(receive));
    EXPECT_FALSE(outcome(send));
    EXPECT_TRUE(into.holds(7));
  }
}

TEST_P(DeviceMessageRows, ReturnTheirKeysOnceEach) {
  std::mutex mutex;
  std::map<std::uint64_t, std::error_code> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(ended.emplace(key, how).second) << key;
  };
  sender().set_message_handlers(std::move(handlers));
  kind_memory small(there(), 10, 1);
  kind_memory big(there(), mib, 2);
  std::error_code ec;
  for (std::uint64_t key = 0; key < 5; ++key) {
    sender().post_send(1, small.bytes(), key, {}, ec);
    sender().post_send(2, big.bytes(), 100 + key, {}, ec);
  }
  for (int i = 0; i < 5; ++i) {
    kind_memory first(here(), 10);
    kind_memory second(here(), mib);
    request one = receiver().start_receive(1, first.bytes());
    request two = receiver().start_receive(2, second.bytes());
    EXPECT_FALSE(outcome(one));
    EXPECT_FALSE(outcome(two));
    EXPECT_TRUE(first.holds(1));
    EXPECT_TRUE(second.holds(2));
  }
  EXPECT_TRUE(pair_.until([&] {
    const std::lock_guard guard(mutex);
    return ended.size() == 10;
  }));
  for (const auto& [key, how] : ended) EXPECT_FALSE(how) << key;
}

/// What comes into memory of the library's, which is the host's: the sender's kind.
class DeviceMessageSender : public DeviceMessageRows {};

TEST_P(DeviceMessageSender, IsReceivedInAsManyPartsAsThereAre) {
  kind_memory from(there(), 300'000, 4);
  std::vector<std::span<const std::byte>> parts{from.bytes().first(1), {}};
  parts.push_back(from.bytes().subspan(1, 199'999));
  parts.push_back(from.bytes().subspan(200'000));
  message_parts received;
  request receive = receiver().start_receive(1, {received, mib});
  request send = sender().start_send(1, payload::parts(parts));
  ASSERT_FALSE(outcome(receive));
  ASSERT_FALSE(outcome(send));
  ASSERT_EQ(received.size(), parts.size());
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ASSERT_EQ(received[i].size(), parts[i].size());
    EXPECT_TRUE(holds_pattern(received[i], 4, at));
    at += parts[i].size();
  }
}

TEST_P(DeviceMessageSender, NeedNotTellItsLength) {
  for (const std::size_t size : row_sizes) {
    SCOPED_TRACE(size);
    kind_memory from(there(), size + 1, 5);
    buffer made;
    request receive = receiver().start_receive(1, {made, 16 * mib});
    request send = sender().start_send(1, from.bytes().first(size));
    ASSERT_FALSE(outcome(receive));
    ASSERT_FALSE(outcome(send));
    EXPECT_EQ(made.size(), size);
    EXPECT_TRUE(holds_pattern(made.bytes(), 5));
  }
}

TEST_P(DeviceMessageSender, IsReceivedIntoBuffersOfOnePool) {
  buffer_pool pool({.size = mib, .count = 2});
  for (const std::size_t size : {std::size_t{1000}, mib}) {
    SCOPED_TRACE(size);
    kind_memory from(there(), size, 3);
    std::vector<buffer> made(6);
    std::vector<request> receives;
    std::vector<request> sends;
    for (buffer& each : made) {
      receives.push_back(receiver().start_receive(tag_match::any(), {each, pool}));
      sends.push_back(sender().start_send(1, from.bytes()));
    }
    // Two are out; what is behind them waits until one comes back.
    for (std::size_t i = 0; i < made.size(); ++i) {
      ASSERT_FALSE(outcome(receives[i]));
      EXPECT_EQ(made[i].size(), size);
      EXPECT_TRUE(holds_pattern(made[i].bytes(), 3));
      made[i] = {};
    }
    for (request& each : sends) EXPECT_FALSE(outcome(each));
  }
}

TEST_P(DeviceMessageSender, IsKeptAsItCame) {
  kind_memory first(there(), 1000, 6);
  kind_memory second(there(), 10, 7);
  sender().send(1, first.bytes());
  sender().send(1, second.bytes());
  const message one = pair_.take(1);
  const message two = pair_.take(1);
  ASSERT_TRUE(one.has_payload());
  EXPECT_EQ(one.data().size(), 1000U);
  EXPECT_TRUE(holds_pattern(one.data(), 6));
  EXPECT_TRUE(holds_pattern(two.data(), 7));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceMessageSender,
                         testing::Combine(testing::ValuesIn(every_kind),
                                          testing::Values(memory_kind::host)),
                         [](const auto& chosen) {
                           return std::string(to_string(std::get<0>(chosen.param)));
                         });

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceMessageRows,
                         testing::Combine(testing::ValuesIn(every_kind),
                                          testing::ValuesIn(every_kind)),
                         [](const auto& chosen) {
                           return std::string(to_string(std::get<0>(chosen.param))) + "_to_" +
                                  std::string(to_string(std::get<1>(chosen.param)));
                         });

}  // namespace
}  // namespace ucx::test
