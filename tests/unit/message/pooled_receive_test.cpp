// Receives into the buffers of a pool, which hold senders back where all are out.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "support/handlers/lock_probe.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A message that goes whole, and one that is announced.
constexpr std::size_t lengths[] = {1000, 600'000};
constexpr std::size_t longest = 600'000;

struct pooled_receives : simulated_messages {
  explicit pooled_receives(std::size_t count = 1, const simulated_pair_options& options = {})
      : simulated_messages(options), pool({.size = longest, .count = count}) {}
  buffer_pool pool;
};

TEST(PooledReceive, TakesABufferWhenItsMessageIsThere) {
  for (const std::size_t length : lengths) {
    pooled_receives both(2);
    const std::vector<std::byte> bytes = pattern(length);
    buffer made;
    request receive = both.receiver().start_receive(7, {made, both.pool});
    both.settle();
    EXPECT_EQ(both.pool.available(), 2U) << "one that waits for a message holds nothing";
    request send = both.sender.start_send(7, bytes);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_EQ(both.pool.available(), 1U);
    EXPECT_TRUE(both.pool.owns(made));
    EXPECT_EQ(made.size(), length);
    EXPECT_TRUE(holds_pattern(made.bytes()));
    EXPECT_EQ(receive.received(), (message_info{7, length}));
    made = buffer();
    EXPECT_EQ(both.pool.available(), 2U);
  }
}

TEST(PooledReceive, WaitsForABufferAndItsMessageWithIt) {
  for (const std::size_t length : lengths) {
    pooled_receives both;
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    buffer made;
    request receive = both.receiver().start_receive(7, {made, both.pool});
    request send = both.sender.start_send(7, bytes, {.until = send_until::matched});
    both.settle(100ms);
    EXPECT_FALSE(receive.done());
    EXPECT_FALSE(send.done()) << "its sender waits, too";
    EXPECT_TRUE(both.receiver().probe(7)) << "it is nobody's yet";
    out.reset();
    EXPECT_EQ(both.pool.available(), 0U) << "the buffer is the receive's";
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(made.bytes()));
    EXPECT_EQ(made.size(), length);
  }
}

TEST(PooledReceive, AlsoOfWhatCameBefore) {
  for (const std::size_t length : lengths) {
    pooled_receives both;
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    request send = both.sender.start_send(7, bytes);
    both.settle();
    buffer made;
    request receive = both.back().start_receive(7, {made, both.pool});
    both.settle();
    EXPECT_FALSE(receive.done());
    out.reset();
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_TRUE(holds_pattern(made.bytes()));
    EXPECT_FALSE(both.outcome(send));
  }
}

TEST(PooledReceive, BuffersGoToThoseWhoWaitInTurn) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(100);
  std::vector<buffer> made(5);
  std::vector<request> receives;
  for (std::uint64_t i = 0; i < made.size(); ++i) {
    receives.push_back(both.receiver().start_receive(tag_match::any(), {made[i], both.pool}));
    both.sender.send(i, bytes);
  }
  both.settle();
  int told = 0;
  both.pool.when_available([&] { ++told; });
  out.reset();
  for (std::uint64_t i = 0; i < made.size(); ++i) {
    EXPECT_FALSE(both.outcome(receives[i]));
    EXPECT_EQ(receives[i].received().tag, i);
    for (std::uint64_t later = i + 1; later < made.size(); ++later) {
      EXPECT_FALSE(receives[later].done());
    }
    std::error_code ec;
    EXPECT_FALSE(both.pool.take({}, ec));
    EXPECT_EQ(told, 0) << "nobody else has one before them";
    made[i] = buffer();
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(both.pool.available(), 1U);
}

TEST(PooledReceive, KeepsTheOrderOfMessages) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(100);
  buffer made;
  request receive = both.receiver().start_receive(tag_match::any(), {made, both.pool});
  both.sender.send(1, bytes);
  both.settle();
  out.reset();  // laid aside; what comes now has to wait for its turn all the same
  both.sender.send(2, bytes);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_EQ(receive.received().tag, 1U);
  EXPECT_EQ(both.take(tag_match::any()).tag(), 2U);
}

TEST(PooledReceive, MessageThatSomebodyElseTakesFreesTheBuffer) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(100);
  buffer made;
  request receive = both.receiver().start_receive(tag_match::any(), {made, both.pool});
  both.sender.send(1, bytes);
  both.take(1);
  out.reset();
  both.settle();
  EXPECT_EQ(both.pool.available(), 1U);
  EXPECT_FALSE(receive.done());
  both.sender.send(2, bytes);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_EQ(receive.received().tag, 2U);
}

TEST(PooledReceive, EndsAtItsDeadlineAndLeavesTheMessage) {
  for (const std::size_t length : lengths) {
    pooled_receives both;
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    buffer made;
    request receive = both.receiver().start_receive(7, {made, both.pool}, {.timeout = 20ms});
    request send = both.sender.start_send(7, bytes);
    EXPECT_EQ(both.outcome(receive), errc::timed_out);
    EXPECT_FALSE(made);
    out.reset();
    EXPECT_EQ(both.pool.available(), 1U);
    request again = both.receiver().start_receive(7, {made, both.pool});
    EXPECT_FALSE(both.outcome(again));
    EXPECT_TRUE(holds_pattern(made.bytes()));
    EXPECT_FALSE(both.outcome(send));
  }
}

TEST(PooledReceive, CanceledWithABufferLaidAsideGivesItOn) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(100);
  buffer first;
  buffer second;
  request gives_up = both.receiver().start_receive(1, {first, both.pool});
  request waits = both.receiver().start_receive(2, {second, both.pool});
  both.sender.send(1, bytes);
  both.sender.send(2, bytes);
  both.settle();
  out.reset();
  gives_up.cancel();
  EXPECT_EQ(both.outcome(gives_up), errc::canceled);
  EXPECT_FALSE(both.outcome(waits));
  EXPECT_TRUE(holds_pattern(second.bytes()));
  EXPECT_TRUE(both.receiver().probe(1));
}

TEST(PooledReceive, LongerMessageThanTheBuffersIsTruncated) {
  for (const std::size_t length : {std::size_t{101}, std::size_t{300'000}}) {
    simulated_messages both;
    buffer_pool pool({.size = 100, .count = 1});
    const buffer out = pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    buffer made;
    request receive = both.receiver().start_receive(7, {made, pool});
    request send = both.sender.start_send(7, bytes);
    EXPECT_EQ(both.outcome(receive), errc::message_truncated) << "no buffer is waited for";
    EXPECT_EQ(receive.received().length, length);
    EXPECT_FALSE(made);
    // One that went whole is no sender's business any more.
    const bool asked = length > 262144;
    EXPECT_EQ(both.outcome(send),
              asked ? make_error_code(errc::message_truncated) : std::error_code());
  }
}

TEST(PooledReceive, WhatThePlaceHeldGoesHomeFirst) {
  pooled_receives both;
  const std::vector<std::byte> bytes = pattern(100);
  buffer made = both.pool.take();
  for (int i = 0; i < 3; ++i) {
    request receive = both.receiver().start_receive(7, {made, both.pool});
    both.sender.send(7, bytes);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_TRUE(holds_pattern(made.bytes()));
  }
}

TEST(PooledReceive, OfAMessageInHandWaitsAsWell) {
  for (const std::size_t length : lengths) {
    pooled_receives both;
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    request send = both.sender.start_send(7, bytes);
    buffer made;
    request receive;
    {
      message held = both.take(7);
      receive = held.start_receive({made, both.pool});
      buffer other;
      request twice = held.start_receive({other, both.pool});
      EXPECT_EQ(both.outcome(twice), errc::invalid_argument);
    }  // and may die meanwhile
    both.settle();
    EXPECT_FALSE(receive.done());
    out.reset();
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(made.bytes()));
  }
}

TEST(PooledReceive, MessageInHandIsStillThereBehindTheDeadline) {
  for (const std::size_t length : lengths) {
    pooled_receives both;
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(length);
    request send = both.sender.start_send(7, bytes);
    message held = both.take(7);
    buffer made;
    request receive = held.start_receive({made, both.pool}, {.timeout = 20ms});
    EXPECT_EQ(both.outcome(receive), errc::timed_out);
    out.reset();
    receive = held.start_receive({made, both.pool});
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_TRUE(holds_pattern(made.bytes()));
    EXPECT_FALSE(both.outcome(send));
  }
}

TEST(PooledReceive, RefusesAMessageThatIsHeldNoMore) {
  pooled_receives both;
  const buffer out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(longest);
  request send = both.sender.start_send(7, bytes);
  buffer made;
  request receive = both.take(7).start_receive({made, both.pool});
  both.settle();
  EXPECT_FALSE(send.done());
  receive.cancel();
  EXPECT_EQ(both.outcome(receive), errc::canceled);
  EXPECT_EQ(both.outcome(send), errc::message_refused);
}

TEST(PooledReceive, LearnsOfMessagesThatWillNotCome) {
  pooled_receives both;
  const buffer out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(longest);
  buffer posted_made;
  buffer held_made;
  request held_send = both.sender.start_send(7, bytes);
  request held = both.take(7).start_receive({held_made, both.pool});
  request posted = both.receiver().start_receive(8, {posted_made, both.pool});
  request posted_send = both.sender.start_send(8, bytes);
  both.settle();
  held_send.cancel();
  posted_send.cancel();
  EXPECT_EQ(both.outcome(held), errc::message_withdrawn);
  both.settle();
  EXPECT_FALSE(posted.done()) << "it waits for another message";
  EXPECT_FALSE(both.receiver().probe(8));
}

TEST(PooledReceive, LostConnectionEndsItWithoutMessage) {
  pooled_receives both(3);
  std::vector<buffer> out(3);
  for (buffer& each : out) each = both.pool.take();
  const std::vector<std::byte> bytes = pattern(longest);
  request send = both.sender.start_send(7, bytes);
  endpoint back = both.back();
  buffer announced_made;
  buffer posted_made;
  buffer held_made;
  request announced = both.take(7).start_receive({announced_made, both.pool});
  request posted = back.start_receive(8, {posted_made, both.pool});
  both.sender.send(8, pattern(100));
  both.sender.send(9, pattern(200));
  request held = both.take(9).start_receive({held_made, both.pool});
  both.settle();
  both.sender.close(close_mode::abort);
  EXPECT_TRUE(both.outcome(announced));
  EXPECT_FALSE(posted.done());
  EXPECT_FALSE(held.done());
  out.clear();
  EXPECT_FALSE(both.outcome(posted));
  EXPECT_FALSE(both.outcome(held));
  EXPECT_TRUE(holds_pattern(posted_made.bytes()));
  EXPECT_TRUE(holds_pattern(held_made.bytes()));
  EXPECT_EQ(both.pool.available(), 1U);
}

TEST(PooledReceive, GetsTheLossOfItsMessageAndNotTheOneBehindIt) {
  for (const bool of_the_worker : {false, true}) {
    pooled_receives both;
    endpoint back = both.back();
    std::optional<buffer> out = both.pool.take();
    const std::vector<std::byte> bytes = pattern(longest);
    const request send = both.sender.start_send(7, bytes);
    both.sender.send(7, pattern(100, 1));
    both.settle();
    std::vector<buffer> made(3);
    std::vector<request> receives;
    for (buffer& each : made) {
      receives.push_back(of_the_worker ? both.receiver().start_receive(7, {each, both.pool})
                                       : back.start_receive(7, {each, both.pool}));
    }
    both.settle();
    both.pair.reader_process.kill();
    both.settle(5s);
    EXPECT_EQ(receives[0].error(), errc::connection_reset) << "of its message";
    EXPECT_FALSE(receives[1].done()) << "its message is here";
    EXPECT_FALSE(receives[2].done()) << "behind it";
    out.reset();
    EXPECT_FALSE(both.outcome(receives[1]));
    EXPECT_EQ(made[1].size(), 100U);
    EXPECT_TRUE(holds_pattern(made[1].bytes(), 1));
    both.settle();
    EXPECT_EQ(receives[2].done(), !of_the_worker) << "nobody else would send it one";
    made[1] = buffer();
    EXPECT_EQ(both.pool.available(), 1U) << "nobody stands in line";
  }
}

/// It stood in line because of the one before, which somebody else took.
TEST(PooledReceive, NeedsNoBufferForALossThatBecomesTheFirst) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  const std::vector<std::byte> bytes = pattern(longest);
  both.sender.send(7, pattern(100));
  const request send = both.sender.start_send(7, bytes);
  both.settle();
  buffer made;
  request receive = both.receiver().start_receive(7, {made, both.pool});
  both.pair.reader_process.kill();
  both.settle(5s);
  EXPECT_FALSE(receive.done()) << "of a message that is here";
  EXPECT_TRUE(both.receiver().take(7));
  EXPECT_EQ(receive.error(), errc::connection_reset);
}

TEST(PooledReceive, WhoseMessageWentLeavesTheLine) {
  pooled_receives both;
  std::optional<buffer> out = both.pool.take();
  buffer made;
  std::vector<std::byte> plain(100);
  request pooled = both.receiver().start_receive(7, {made, both.pool});
  request other = both.receiver().start_receive(7, plain);
  both.sender.send(7, pattern(100));
  EXPECT_FALSE(both.outcome(other));
  // Nobody drives the worker: the buffer may not be laid aside for who has no use for it.
  out.reset();
  EXPECT_EQ(both.pool.available(), 1U);

  out = both.pool.take();
  both.sender.send(7, pattern(100));
  ASSERT_TRUE(both.network().run_until([&] { return both.receiver().probe(7).has_value(); }));
  EXPECT_TRUE(both.receiver().take(7));
  out.reset();
  EXPECT_EQ(both.pool.available(), 1U);
  EXPECT_FALSE(pooled.done());
}

TEST(BufferPool, TellsNobodyWhenItIsGone) {
  bool told = false;
  buffer out;
  {
    buffer_pool pool({.size = 10, .count = 1});
    out = pool.take();
    pool.when_available([&] { told = true; });
  }
  out = buffer();
  EXPECT_FALSE(told);
  buffer_pool pool({.size = 10, .count = 1});
  out = pool.take();
  pool.when_available([&] { told = true; });
  pool = buffer_pool({.size = 20, .count = 2});
  out = buffer();
  EXPECT_FALSE(told);
  EXPECT_EQ(pool.available(), 2U);
}

TEST(PooledReceive, PoolMayGoBeforeAndMustNotBeEmptyHanded) {
  simulated_messages both;
  buffer made;
  request receive;
  {
    buffer_pool pool({.size = 100, .count = 1});
    receive = both.receiver().start_receive(7, {made, pool});
    const buffer_pool moved(std::move(pool));
    buffer kept(10);
    request none = both.receiver().start_receive(7, {kept, pool});
    EXPECT_EQ(both.outcome(none), errc::closed);
    none = both.sender.start_receive(7, {kept, pool});
    EXPECT_EQ(both.outcome(none), errc::closed);
    none = message().start_receive({kept, pool});
    EXPECT_EQ(both.outcome(none), errc::closed);
    EXPECT_TRUE(kept);
  }
  both.sender.send(7, pattern(100));
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(holds_pattern(made.bytes()));
}

TEST(PooledReceive, UsersCodeOfAPoolRunsUnderNoLock) {
  simulated_pair_options options;
  options.reader_worker.thread_mode = thread_mode::multi;
  pooled_receives both(1, options);
  buffer made;
  {
    request receive = both.receiver().start_receive(7, {made, both.pool});
    both.sender.send(7, pattern(10));
    EXPECT_FALSE(both.outcome(receive));
  }
  // It comes back where the send ends.
  lock_probe lock(both.pair.reader);
  std::optional<std::size_t> available;
  both.pool.when_available([&] {
    available = both.pool.available();
    EXPECT_TRUE(lock.is_free());
  });
  const std::vector<std::byte> into(10);
  std::vector<std::byte> there(10);
  request receive = both.receiver().start_receive(8, there);
  request send = both.sender.start_send(8, std::move(made));
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_FALSE(both.outcome(send));
  both.settle();
  EXPECT_EQ(available, 1U);
}

TEST(PooledReceive, OnePoolHoldsBackAnyNumberOfSenders) {
  simulated_pair_options options;
  options.owner_worker.message_window = 64U << 10U;
  simulated_messages both(options);
  endpoint other(both.pair.reader, both.receiver().address());
  buffer_pool pool({.size = 1000, .count = 3});
  const std::vector<std::byte> bytes = pattern(1000);
  std::vector<request> sends;
  for (std::uint64_t i = 0; i < 400; ++i) {
    sends.push_back((i % 2 == 0 ? both.sender : other).start_send(i, bytes));
  }
  std::vector<buffer> made(10);
  std::vector<request> receives;
  for (buffer& each : made) {
    receives.push_back(both.receiver().start_receive(tag_match::any(), {each, pool}));
  }
  both.settle(100ms);
  EXPECT_EQ(pool.available(), 0U);
  EXPECT_FALSE(sends.back().done());
  std::size_t received = 0;
  while (received < sends.size()) {
    for (std::size_t i = 0; i < made.size() && received < sends.size(); ++i) {
      ASSERT_FALSE(both.outcome(receives[i]));
      EXPECT_TRUE(holds_pattern(made[i].bytes()));
      ++received;
      made[i] = buffer();
      receives[i] = both.receiver().start_receive(tag_match::any(), {made[i], pool});
    }
  }
  for (request& each : sends) EXPECT_FALSE(both.outcome(each));
  receives.clear();
  EXPECT_EQ(pool.available(), 3U);
}

}  // namespace
}  // namespace ucx::test
