// What bounds the messages that nobody has taken: room at the receiver, and those who wait for it.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/replaced/shortage.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

simulated_pair_options with_window(std::size_t window) {
  simulated_pair_options options;
  options.owner_worker.message_window = window;
  options.reader_worker.message_window = window;
  return options;
}

constexpr send_options at_once{.backpressure = backpressure::fail};

/// Sends until there is no room, and returns how many went.
std::size_t fill(simulated_messages& both, std::span<const std::byte> bytes) {
  for (std::size_t sent = 0;; ++sent) {
    request send = both.sender.start_send(sent, bytes, at_once);
    if (both.outcome(send) == errc::would_block) return sent;
    EXPECT_FALSE(send.error());
    if (sent > 100000) return sent;
  }
}

/// They are announced where they would take too much of the window.
TEST(MessageRoom, LongMessagesThatNobodyTakesKeepNoOthersBack) {
  simulated_messages both;
  const std::vector<std::byte> bytes = pattern(250'000);
  std::vector<request> sends;
  for (int i = 0; i < 100; ++i) sends.push_back(both.sender.start_send(1, bytes, at_once));
  for (const request& each : sends) ASSERT_FALSE(each.error());
  both.sender.send(2, pattern(10, 3));
  std::vector<std::byte> into(10);
  request behind = both.receiver().start_receive(2, into);
  EXPECT_FALSE(both.outcome(behind));
  EXPECT_TRUE(holds_pattern(into, 3));
  std::vector<std::byte> place(bytes.size());
  for (int i = 0; i < 100; ++i) {
    request receive = both.receiver().start_receive(1, place);
    ASSERT_FALSE(both.outcome(receive));
    ASSERT_TRUE(holds_pattern(place));
  }
  for (request& each : sends) EXPECT_FALSE(both.outcome(each));
}

TEST(MessageRoom, ThousandsOfUnexpectedMessagesAreBounded) {
  for (const std::size_t size : {0U, 1U, 1000U, 20000U, 1U << 20U}) {
    simulated_messages both(with_window(1U << 20U));
    const std::vector<std::byte> bytes = pattern(size);
    if (size > 262144) {
      // Announced, and kept at the sender.
      std::vector<request> sends;
      for (int i = 0; i < 10000; ++i) {
        sends.push_back(both.sender.start_send(1, bytes, at_once));
        if (sends.back().error()) break;
      }
      EXPECT_EQ(sends.size(), 4096U + 1U);
      EXPECT_EQ(sends.back().error(), errc::would_block);
      continue;
    }
    const std::size_t sent = fill(both, bytes);
    EXPECT_GT(sent, (1U << 20U) / (size + 600));
    EXPECT_LE(sent, (1U << 20U) / std::max<std::size_t>(size, 256));
    // Everything is there, in order, and makes room.
    for (std::size_t i = 0; i < sent; ++i) {
      std::vector<std::byte> into(size);
      request receive = both.receiver().start_receive(i, into);
      ASSERT_FALSE(both.outcome(receive));
    }
    both.settle();
    EXPECT_GE(fill(both, bytes), sent * 3 / 4);
  }
}

TEST(MessageRoom, SendsWaitInOrderUntilThereIsSome) {
  simulated_messages both(with_window(64U << 10U));
  const std::vector<std::byte> bytes = pattern(10000);
  std::vector<request> sends;
  for (std::uint64_t i = 0; i < 50; ++i) sends.push_back(both.sender.start_send(i, bytes));
  both.settle();
  EXPECT_TRUE(sends.front().done());
  EXPECT_FALSE(sends.back().done());
  for (std::uint64_t i = 0; i < 50; ++i) {
    std::vector<std::byte> into(bytes.size());
    request receive = both.receiver().start_receive(tag_match::any(), into);
    ASSERT_FALSE(both.outcome(receive));
    EXPECT_EQ(receive.received().tag, i);
  }
  for (request& each : sends) EXPECT_FALSE(both.outcome(each));
}

TEST(MessageRoom, WaitForItIsBoundedByTheDeadline) {
  simulated_messages both(with_window(16U << 10U));
  const std::vector<std::byte> bytes = pattern(1000);
  fill(both, bytes);
  request late = both.sender.start_send(7, bytes, {.timeout = 20ms});
  request behind = both.sender.start_send(8, bytes, {.timeout = 1s});
  EXPECT_EQ(both.outcome(late), errc::timed_out);
  EXPECT_FALSE(behind.done());
  while (both.receiver().take(tag_match::any())) {
  }
  EXPECT_FALSE(both.outcome(behind));
  EXPECT_EQ(both.take(8).length(), 1000U);
  EXPECT_FALSE(both.receiver().probe(7));
}

TEST(MessageRoom, HandlerTellsOfNewRoom) {
  simulated_messages both(with_window(16U << 10U));
  const std::vector<std::byte> bytes = pattern(1000);
  int room = 0;
  message_handlers handlers;
  handlers.on_writable = [&] { ++room; };
  both.sender.set_message_handlers(std::move(handlers));
  for (int round = 1; round < 4; ++round) {
    EXPECT_GT(fill(both, bytes), 0U);
    both.settle();
    EXPECT_EQ(room, round - 1);
    while (both.receiver().take(tag_match::any())) {
    }
    both.settle();
    EXPECT_EQ(room, round);
  }
}

/// Who leads the worker may sleep meanwhile: rounds that find something to do without end would not
/// let it.
TEST(MessageRoom, IsToldLaterWhereThereIsNoMemoryAndKeepsNobodyBusyUntilThen) {
  simulated_pair_options options = with_window(16U << 10U);
  options.link.idle_step = 1us;
  simulated_messages both(options);
  const std::vector<std::byte> bytes = pattern(1000);
  int room = 0;
  message_handlers handlers;
  handlers.on_writable = [&] { ++room; };
  both.sender.set_message_handlers(std::move(handlers));
  EXPECT_GT(fill(both, bytes), 0U);
  both.settle();
  detail::worker_core& core = *detail::core_access::core(both.pair.reader);
  int busy = 0;
  {
    const std::lock_guard handlers_wait(core.lock());
    while (both.receiver().take(tag_match::any())) {
    }
    const lasting_shortage begun;
    bool full = false;
    for (int i = 0; i < 100'000 && !full; ++i) {
      try {
        core.queue_handler([] {});
      } catch (const std::bad_alloc&) {
        full = true;
      }
    }
    EXPECT_TRUE(full);
    const std::uint64_t failed = current_shortage.failed;
    for (int i = 0; i < 1000; ++i) busy += both.pair.reader.progress() ? 1 : 0;
    EXPECT_GT(current_shortage.failed, failed) << "nobody has tried";
  }
  EXPECT_LT(busy, 100);
  EXPECT_EQ(room, 0);
  both.settle();
  both.settle();
  EXPECT_EQ(room, 1);
  both.settle();
  EXPECT_EQ(room, 1) << "once";
}

TEST(MessageRoom, HeldMessagesHoldTheirSenderBack) {
  simulated_messages both(with_window(16U << 10U));
  const std::vector<std::byte> bytes = pattern(1000);
  const std::size_t sent = fill(both, bytes);
  both.settle();
  std::vector<message> held;
  while (std::optional<message> next = both.receiver().take(tag_match::any())) {
    held.push_back(std::move(*next));
  }
  both.settle();
  EXPECT_EQ(held.size(), sent);
  EXPECT_EQ(fill(both, bytes), 0U);
  for (const message& each : held) EXPECT_TRUE(holds_pattern(each.data()));
  held.clear();
  both.settle();
  EXPECT_GT(fill(both, bytes), 0U);
}

TEST(MessageRoom, MessageLargerThanTheWindowIsAskedFor) {
  simulated_messages both(with_window(16U << 10U));
  const std::vector<std::byte> bytes = pattern(60000);
  request send = both.sender.start_send(1, bytes);
  both.settle();
  EXPECT_FALSE(send.done());
  std::vector<std::byte> into(bytes.size());
  request receive = both.receiver().start_receive(1, into);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
}

/// Sixteen windows are kept of connections that are gone. Of each that is a beginning, and the log
/// tells of the rest.
TEST(MessageRoom, WhatConnectionsLeaveIsBoundedAndHasNoGaps) {
  constexpr std::size_t window = 64U << 10U;
  simulated_pair_options options = with_window(window);
  std::vector<std::string> lines;
  options.owner_context.log = {log_level::warning,
                               [&](log_level, std::string_view line) { lines.emplace_back(line); }};
  simulated_pair pair(options);
  constexpr std::uint64_t peers = 24;
  constexpr std::size_t each_sends = 5;
  constexpr std::size_t sizes[each_sends] = {20'000, 10, 30'000, 10, 10};
  for (std::uint64_t peer = 0; peer < peers; ++peer) {
    endpoint sender = pair.connect();
    for (const std::size_t size : sizes) sender.send(peer, pattern(size, peer));
    sender.close();
    pair.network.advance(1s);
  }
  std::size_t kept = 0;
  std::size_t missing = 0;
  for (std::uint64_t peer = 0; peer < peers; ++peer) {
    std::size_t i = 0;
    for (; pair.owner.probe(peer); ++i) {
      ASSERT_LT(i, each_sends);
      std::vector<std::byte> into(sizes[i]);
      request receive = pair.owner.start_receive(peer, into);
      ASSERT_FALSE(receive.error());
      EXPECT_EQ(receive.received(), (message_info{peer, sizes[i]})) << "none before it is missing";
      EXPECT_TRUE(holds_pattern(into, peer));
      kept += sizes[i];
    }
    missing += each_sends - i;
  }
  EXPECT_LE(kept, 16 * window);
  EXPECT_GT(kept, 15 * window);
  EXPECT_GT(missing, 0U);
  std::size_t told = 0;
  for (const std::string& line : lines) {
    const auto at = line.find("its last ");
    if (at != std::string::npos) told += std::stoul(line.substr(at + 9));
  }
  EXPECT_EQ(told, missing);
}

/// The first of two that a connection leaves has no room, and the second goes with it: who waited
/// for a buffer because of the first waits for somebody else's.
TEST(MessageRoom, FullSendLeavesWaitersForABuffer) {
  constexpr std::size_t window = 64U << 10U;
  simulated_pair pair(with_window(window));
  for (int i = 0; i < 16; ++i) {
    endpoint sender = pair.connect();
    sender.wait_connected();
    const std::vector<std::byte> bytes = pattern(1000);
    std::error_code ec;
    while (!ec) sender.post_send(8, bytes, 0, at_once, ec);
    sender.close();
    pair.network.advance(1s);
  }
  endpoint sender = pair.connect();
  sender.send(7, pattern(30'000));
  const std::vector<std::byte> announced = pattern(1U << 20U);
  const request lost = sender.start_send(7, announced);
  pair.network.advance(1ms);
  buffer_pool pool({.size = 1U << 20U, .count = 1});
  std::optional<buffer> out = pool.take();
  buffer made;
  request receive = pair.owner.start_receive(7, {made, pool});
  sender.close(close_mode::abort);
  pair.network.advance(5s);
  EXPECT_FALSE(pair.owner.probe(7));
  EXPECT_FALSE(receive.done());
  out.reset();
  EXPECT_EQ(pool.available(), 1U) << "it left the line";
  pair.connect().send(7, pattern(100, 3));
  EXPECT_TRUE(pair.network.run_until([&] { return receive.done(); }));
  EXPECT_EQ(made.size(), 100U);
  EXPECT_TRUE(holds_pattern(made.bytes(), 3));
}

TEST(MessageRoom, StreamWaitsForItsReader) {
  simulated_messages both(with_window(64U << 10U));
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  request send = both.sender.start_stream_send(bytes);
  both.settle(100ms);
  EXPECT_FALSE(send.done());
  std::vector<std::byte> into(bytes.size());
  EXPECT_EQ(back.stream_receive(into, stream_amount::all), bytes.size());
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(both.outcome(send));
}

TEST(MessageRoom, BufferIsStillTheCallersWhereThereIsNone) {
  simulated_messages both(with_window(16U << 10U));
  fill(both, pattern(1000));
  buffer kept(1000);
  request send = both.sender.start_send(1, std::move(kept), at_once);
  EXPECT_EQ(send.error(), errc::would_block);
  EXPECT_TRUE(kept);
  std::error_code ec;
  both.sender.post_send(1, std::move(kept), 77, at_once, ec);
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_TRUE(kept);
}

TEST(MessageRoom, NothingOfUcxIsLeftBehind) {
  simulated_messages both;
  std::array<std::byte, 64> into{};
  const std::vector<std::byte> bytes = pattern(64);
  for (int i = 0; i < 3000; ++i) {
    request receive = both.receiver().start_receive(1, into);
    both.sender.send(1, bytes);
    ASSERT_FALSE(both.outcome(receive));
  }
  EXPECT_EQ(both.network().live().requests, 0U);
}

/// A peer that takes nothing, behind a socket that holds little.
struct stopped_receiver : simulated_messages {
  stopped_receiver() : simulated_messages(small_socket()) { pair.owner_process.stop(); }
  ~stopped_receiver() { pair.owner_process.resume(); }

  static simulated_pair_options small_socket() {
    simulated_pair_options options;
    options.link.socket_buffer = 100'000;
    options.reader_worker.operation_timeout = 1h;
    options.reader_worker.heartbeat_timeout = 2s;
    return options;
  }
};

TEST(MessageRoom, MemoryIsGivenBackWhenThePeerIsSilent) {
  stopped_receiver both;
  const std::vector<std::byte> bytes = pattern(60'000);
  std::vector<request> sends;
  for (int i = 0; i < 10; ++i) sends.push_back(both.sender.start_send(1, bytes));
  const auto begin = both.network().now();
  EXPECT_EQ(both.outcome(sends.back()), errc::connection_reset);
  EXPECT_LT(both.network().now() - begin, 3s);
}

TEST(MessageRoom, StreamIsGivenBackWhenThePeerIsSilent) {
  stopped_receiver both;
  const std::vector<std::byte> bytes = pattern(1'000'000);
  request send = both.sender.start_stream_send(bytes);
  const auto begin = both.network().now();
  EXPECT_EQ(both.outcome(send), errc::connection_reset);
  EXPECT_LT(both.network().now() - begin, 3s);
}

TEST(MessageRoom, WithdrawingThousandsAtOnceIsNobodysFault) {
  stopped_receiver both;
  const std::vector<std::byte> bytes = pattern(1U << 20U);
  std::vector<request> sends;
  for (int i = 0; i < 6000; ++i) sends.push_back(both.sender.start_send(1, bytes));
  for (request& each : sends) each.cancel();
  for (request& each : sends) EXPECT_EQ(both.outcome(each), errc::canceled);
  EXPECT_FALSE(both.sender.status());
}

}  // namespace
}  // namespace ucx::test
