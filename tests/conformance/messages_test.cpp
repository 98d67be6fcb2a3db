// Messages with tags and the byte stream, by the rows C1 to C26 of docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "conformance/message_fixture.hpp"
#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/receive_target.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST_P(ConformanceC, C1_SendsAndReceivesByTagAndMask) {
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size, size);
    std::vector<std::byte> into(size);
    request receive = receiver().start_receive({size << 8U, ~std::uint64_t{0xff}}, into);
    request send = sender().start_send((size << 8U) + 7, bytes);
    ASSERT_FALSE(outcome(send));
    ASSERT_FALSE(outcome(receive));
    EXPECT_EQ(receive.received(), (message_info{(size << 8U) + 7, size}));
    EXPECT_TRUE(holds_pattern(into, size)) << size;
  }
}

TEST_P(ConformanceC, C2_ReceivesFromAnybodyAndFromOnePeer) {
  endpoint back = pair_.back();
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into(size);
    request from_any = pair_.sender_side().start_receive(5, into);
    request send = back.start_send(5, bytes);
    ASSERT_FALSE(outcome(from_any));
    ASSERT_FALSE(outcome(send));
    EXPECT_TRUE(holds_pattern(into));
    request there = sender().start_send(6, bytes);
    request here = back.start_receive(6, into);
    ASSERT_FALSE(outcome(here));
    EXPECT_EQ(here.received().length, size);
    ASSERT_FALSE(outcome(there));
  }
}

TEST_P(ConformanceC, C3_ProbeTellsLengthAndTag) {
  EXPECT_FALSE(receiver().probe(tag_match::any()));
  sender().send(0x77, pattern(100));
  ASSERT_TRUE(pair_.until([&] { return receiver().probe({0x70, 0xf0}).has_value(); }));
  EXPECT_EQ(receiver().probe({0x70, 0xf0}), (message_info{0x77, 100}));
  EXPECT_FALSE(receiver().probe(0x78));
}

TEST_P(ConformanceC, C4_TakesAMessageAndReceivesItByItsHandle) {
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    request send = sender().start_send(1, bytes);
    message taken = pair_.take(1);
    EXPECT_FALSE(receiver().probe(1));
    EXPECT_EQ(taken.length(), size);
    std::vector<std::byte> into(size);
    request receive = taken.start_receive(into);
    EXPECT_FALSE(outcome(receive));
    EXPECT_TRUE(holds_pattern(into));
    EXPECT_FALSE(outcome(send));
  }
}

TEST_P(ConformanceC, C5_TruncationTellsTheTrueLengthAndSoDoesLess) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{1} << 20U}) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into(999, std::byte{0xa5});
    request receive = receiver().start_receive(1, into);
    request send = sender().start_send(1, bytes);
    EXPECT_EQ(outcome(receive), errc::message_truncated);
    EXPECT_EQ(receive.received().length, size);
    EXPECT_TRUE(all_bytes_are(into, std::byte{0xa5}));
    const std::error_code told = outcome(send);
    EXPECT_EQ(told == errc::message_truncated, size > 1000);
    std::vector<std::byte> more(size + 10);
    request longer = receiver().start_receive(2, more);
    request again = sender().start_send(2, bytes);
    EXPECT_FALSE(outcome(longer));
    EXPECT_FALSE(outcome(again));
    EXPECT_EQ(longer.received().length, size);
  }
}

TEST_P(ConformanceC, C6_ReceivesAsManyPartsAsThereAre) {
  for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::span<const std::byte>> parts;
    for (std::size_t i = 0; i < count; ++i) {
      memory.push_back(pattern(i % 7 == 3 ? 100'000 : i, i));
    }
    parts.assign(memory.begin(), memory.end());
    message_parts received;
    request receive = receiver().start_receive(1, {received, std::size_t{32} << 20U});
    request send = sender().start_send(1, payload::parts(parts));
    ASSERT_FALSE(outcome(receive));
    ASSERT_FALSE(outcome(send));
    ASSERT_EQ(received.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(received[i].size(), memory[i].size());
      ASSERT_TRUE(holds_pattern(received[i], i));
    }
  }
  // What was not sent as parts is an error of this receive, and of nothing else.
  message_parts received;
  request receive = receiver().start_receive(1, {received, 1000});
  sender().send(1, pattern(100));
  EXPECT_EQ(outcome(receive), errc::protocol_error);
  EXPECT_FALSE(sender().status());
}

TEST_P(ConformanceC, C7_ReceiverAllocatesWhatIsOfUnknownLength) {
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    buffer made;
    request receive = receiver().start_receive(1, {made, std::size_t{16} << 20U});
    request send = sender().start_send(1, bytes);
    ASSERT_FALSE(outcome(receive));
    ASSERT_FALSE(outcome(send));
    EXPECT_EQ(made.size(), size);
    EXPECT_TRUE(holds_pattern(made.bytes()));
  }
}

TEST_P(ConformanceC, C8_StreamsBytesBothWays) {
  endpoint back = pair_.back();
  for (const std::size_t size : conformance_sizes) {
    const std::vector<std::byte> there = pattern(size, 1);
    const std::vector<std::byte> here = pattern(size, 2);
    std::vector<std::byte> into(size);
    std::vector<std::byte> back_into(size);
    // Over a connection of a worker to itself both directions are one stream.
    if (pair_.to_itself()) {
      request send = sender().start_stream_send(there);
      request receive = sender().start_stream_receive(into, stream_amount::all);
      EXPECT_FALSE(outcome(receive));
      EXPECT_FALSE(outcome(send));
      EXPECT_TRUE(holds_pattern(into, 1));
      continue;
    }
    request send = sender().start_stream_send(there);
    request send_back = back.start_stream_send(here);
    request receive = sender().start_stream_receive(back_into, stream_amount::all);
    for (std::size_t read = 0; read < size;) {
      request some = back.start_stream_receive(std::span(into).subspan(read), stream_amount::some);
      ASSERT_FALSE(outcome(some));
      read += static_cast<std::size_t>(some.received().length);
    }
    EXPECT_FALSE(outcome(send));
    EXPECT_FALSE(outcome(send_back));
    EXPECT_FALSE(outcome(receive));
    EXPECT_TRUE(holds_pattern(into, 1));
    EXPECT_TRUE(holds_pattern(back_into, 2));
  }
}

TEST_P(ConformanceC, C8_LongStreamsKeepNoBoundaries) {
  if (pair_.to_itself()) GTEST_SKIP() << "both directions are one stream";
  endpoint back = pair_.back();
  const std::vector<std::byte> bytes = pattern((std::size_t{3} << 20U) + 1);
  const std::span<const std::byte> all(bytes);
  std::vector<std::byte> into(bytes.size());
  const auto receive = [&](std::size_t at, std::size_t size) {
    return back.start_stream_receive(std::span(into).subspan(at, size), stream_amount::all);
  };
  // Three sends, and four receives that end elsewhere; one of them is given up in between.
  request first = sender().start_stream_send(all.first(1'000'000));
  request second = sender().start_stream_send(all.subspan(1'000'000, 1));
  request third = sender().start_stream_send(all.subspan(1'000'001));
  request begins = receive(0, 999'999);
  EXPECT_FALSE(outcome(begins));
  std::vector<std::byte> given_up(bytes.size());
  request cancelled = back.start_stream_receive(given_up, stream_amount::all);
  cancelled.cancel();
  ASSERT_EQ(outcome(cancelled), errc::canceled);
  const auto taken = static_cast<std::size_t>(cancelled.received().length);
  const std::size_t from = 999'999 + taken;
  ASSERT_LE(from, into.size());
  std::copy_n(given_up.begin(), taken, into.begin() + 999'999);
  const std::size_t half = (into.size() - from) / 2;
  request middle = receive(from, half);
  request rest = receive(from + half, into.size() - from - half);
  for (request* each : {&middle, &rest, &first, &second, &third}) EXPECT_FALSE(outcome(*each));
  EXPECT_TRUE(holds_pattern(into));
}

TEST_P(ConformanceC, C14_C15_GathersAndScatters) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{3} << 20U}) {
    const std::vector<std::byte> whole = pattern(size);
    const std::span<const std::byte> all(whole);
    const std::array<std::span<const std::byte>, 3> from{all.first(1), all.subspan(1, size / 2),
                                                         all.subspan(1 + size / 2)};
    std::vector<std::byte> landed(size);
    const std::span<std::byte> out(landed);
    const std::array<std::span<std::byte>, 3> into{out.first(size / 3), out.subspan(size / 3, 5),
                                                   out.subspan(size / 3 + 5)};
    request receive = receiver().start_receive(1, into);
    request send = sender().start_send(1, from);
    EXPECT_FALSE(outcome(send));
    EXPECT_FALSE(outcome(receive));
    EXPECT_TRUE(holds_pattern(landed));
  }
}

TEST_P(ConformanceC, C19_C24_C26_EveryKindOfSendOnOneConnection) {
  buffer_pool pool({.size = 300000, .count = 4});
  std::vector<std::byte> freed_memory = pattern(600000);
  std::atomic<int> freed{0};
  for (const std::size_t size : {std::size_t{10}, std::size_t{300000}}) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<request> sends;
    sends.push_back(sender().start_send(1, bytes));
    std::vector<std::byte> fleeting = bytes;
    sends.push_back(sender().start_send(1, fleeting, {.memory = send_memory::copied}));
    fleeting.assign(size, std::byte{});
    buffer pooled = pool.take();
    pooled.resize(size);
    fill_pattern(pooled.bytes());
    sends.push_back(sender().start_send(1, std::move(pooled)));
    buffer adopted(freed_memory, [&](std::span<std::byte>) { ++freed; });
    adopted.resize(size);
    sends.push_back(sender().start_send(1, std::move(adopted)));
    EXPECT_EQ(sender().start_send(1, std::move(adopted)).error(), errc::empty_buffer);
    for (int i = 0; i < 4; ++i) {
      std::vector<std::byte> into(size);
      request receive = receiver().start_receive(1, into);
      ASSERT_FALSE(outcome(receive));
      EXPECT_EQ(receive.received().length, size);
      EXPECT_TRUE(holds_pattern(into)) << i;
    }
    for (request& each : sends) EXPECT_FALSE(outcome(each));
  }
  EXPECT_TRUE(pair_.until([&] { return pool.available() == 4 && freed == 2; }));
}

TEST_P(ConformanceC, C24_ReceivesIntoBuffersOfOnePoolFromAnybody) {
  // As many receives as there are buffers; what comes beyond them holds its sender back.
  buffer_pool pool({.size = 1000, .count = 4});
  endpoint second(pair_.sender_side(), receiver().address());
  std::vector<request> sends;
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t i = 0; i < 40; ++i) {
    sent.push_back(pattern(100 + i, i));
    sends.push_back((i % 2 == 0 ? sender() : second).start_send(i, sent.back()));
  }
  std::size_t received = 0;
  while (received < 40) {
    std::vector<buffer> places;
    std::vector<request> receives;
    while (pool.available() > 0) {
      places.push_back(pool.take());
      receives.push_back(receiver().start_receive(tag_match::any(), places.back().bytes()));
    }
    EXPECT_EQ(receives.size(), 4U);
    for (std::size_t i = 0; i < receives.size(); ++i, ++received) {
      ASSERT_FALSE(outcome(receives[i]));
      const message_info came = receives[i].received();
      EXPECT_EQ(came.length, 100 + came.tag);
      places[i].resize(static_cast<std::size_t>(came.length));
      EXPECT_TRUE(holds_pattern(places[i].bytes(), came.tag));
    }
  }
  for (request& each : sends) EXPECT_FALSE(outcome(each));
  request closing = second.start_close();
  EXPECT_FALSE(outcome(closing));
}

TEST_P(ConformanceC, C24_C25_OnePoolOfReceivesHoldsEverySenderBack) {
  // More receives than buffers: each takes one when its message is there, and the others wait.
  buffer_pool pool({.size = 600'000, .count = 3});
  endpoint second(pair_.sender_side(), receiver().address());
  constexpr std::size_t count = 24;
  std::vector<std::vector<std::byte>> sent;
  std::vector<request> sends;
  std::vector<buffer> places(count);
  std::vector<request> receives;
  for (std::size_t i = 0; i < count; ++i) {
    sent.push_back(pattern(i % 3 == 0 ? 600'000 : 100 + i, i));
    endpoint& over = i % 2 == 0 ? sender() : second;
    sends.push_back(over.start_send(i, sent.back(), {.until = send_until::matched}));
    receives.push_back(receiver().start_receive(tag_match::any(), {places[i], pool}));
  }
  std::vector<std::size_t> left(count);
  std::iota(left.begin(), left.end(), 0U);
  while (!left.empty()) {
    auto next = left.end();
    ASSERT_TRUE(pair_.until([&] {
      next = std::find_if(left.begin(), left.end(), [&](auto i) { return receives[i].done(); });
      return next != left.end();
    }));
    const std::size_t i = *next;
    left.erase(next);
    ASSERT_FALSE(receives[i].error()) << receives[i].error().message();
    const message_info came = receives[i].received();
    EXPECT_TRUE(pool.owns(places[i]));
    EXPECT_EQ(places[i].size(), sent[came.tag].size());
    EXPECT_TRUE(holds_pattern(places[i].bytes(), came.tag));
    places[i] = buffer();  // the next one's
  }
  for (request& each : sends) EXPECT_FALSE(outcome(each));
  request closing = second.start_close();
  EXPECT_FALSE(outcome(closing));
  EXPECT_EQ(pool.available(), 3U);
}

TEST_P(ConformanceC, C24_AConnectionsOwnPoolHoldsNobodyElseBack) {
  if (pair_.to_itself()) GTEST_SKIP() << "whose message it is can not be told: all come from here";
  endpoint second(pair_.sender_side(), receiver().address());
  ASSERT_TRUE(pair_.until([&] { return second.state() == connection_state::active; }));
  second.send(0xbac, {});
  endpoint back_of_second = pair_.take(0xbac).peer();
  endpoint back = pair_.back();
  buffer_pool narrow({.size = 1000, .count = 1});
  buffer_pool wide({.size = 1000, .count = 3});
  const std::vector<std::byte> bytes = pattern(900);
  std::vector<buffer> first_places(3);
  std::vector<buffer> second_places(3);
  std::vector<request> firsts;
  std::vector<request> seconds;
  for (std::size_t i = 0; i < 3; ++i) {
    firsts.push_back(back.start_receive(tag_match::any(), {first_places[i], narrow}));
    seconds.push_back(back_of_second.start_receive(tag_match::any(), {second_places[i], wide}));
    sender().send(1, bytes);
    second.send(2, bytes);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(outcome(seconds[i]));
    EXPECT_TRUE(wide.owns(second_places[i]));
    EXPECT_TRUE(holds_pattern(second_places[i].bytes()));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(outcome(firsts[i]));
    EXPECT_EQ(firsts[i].received().tag, 1U);
    EXPECT_TRUE(narrow.owns(first_places[i]));
    if (i < 2) {
      EXPECT_FALSE(firsts[i + 1].done()) << "the only buffer is out";
    }
    first_places[i] = buffer();
  }
  request closing = second.start_close();
  EXPECT_FALSE(outcome(closing));
}

TEST_P(ConformanceC, C20_CopyingSendsAreDoneAtOnce) {
  std::vector<std::byte> bytes = pattern(1000);
  request send = sender().start_send(1, bytes, {.memory = send_memory::copied});
  EXPECT_TRUE(send.done());
  bytes.assign(1000, std::byte{});
  EXPECT_TRUE(holds_pattern(pair_.take(1).data()));
}

TEST_P(ConformanceC, C22_KeysComeBackOnceEach) {
  std::mutex mutex;
  std::map<std::uint64_t, std::error_code> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(ended.emplace(key, how).second) << key;
  };
  sender().set_message_handlers(std::move(handlers));
  const auto count = [&] {
    const std::lock_guard guard(mutex);
    return ended.size();
  };
  const std::vector<std::byte> small = pattern(10);
  const std::vector<std::byte> big = pattern(1U << 20U);
  std::error_code ec;
  const std::vector<std::span<const std::byte>> parts{small, small};
  std::atomic<int> right{0};
  receiver().on_message(5, [&](const message& came) {
    const std::span<const std::byte> data = came.data();
    if (holds_pattern(came.header()) && came.header().size() == 10 && data.size() == 20 &&
        holds_pattern(data.first(10)) && holds_pattern(data.last(10))) {
      ++right;
    }
  });
  for (std::uint64_t key = 0; key < 5; ++key) {
    sender().post_send(1, small, key << 40U, {}, ec);
    sender().post_send(3, parts, (key + 5) << 40U, {}, ec);
    sender().post_send(4, payload::parts(parts), (key + 10) << 40U, {}, ec);
    sender().post_send(active_message{5, small}, parts, (key + 15) << 40U, {}, ec);
  }
  EXPECT_TRUE(pair_.until([&] { return count() == 20 && right == 5; }));
  receiver().on_message(5, {});
  std::vector<std::byte> gathered(20);
  EXPECT_EQ(receiver().receive(3, gathered).length, 20U);
  EXPECT_TRUE(holds_pattern(std::span(gathered).last(10)));
  message_parts apart;
  request receive = receiver().start_receive(4, {apart, 1000});
  EXPECT_FALSE(outcome(receive));
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_TRUE(holds_pattern(apart[1]));
  for (std::uint64_t key = 0; key < 5; ++key) sender().post_send(2, big, 100 + key, {}, ec);
  // Nobody receives them: closing hands the keys back.
  sender().close(close_mode::abort, ec);
  EXPECT_TRUE(pair_.until([&] { return count() == 25; }));
  const std::lock_guard guard(mutex);
  EXPECT_EQ(ended.at(104), errc::canceled);
}

TEST_P(ConformanceC, CancelAtAnyMomentEndsBothSidesOnce) {
  const std::vector<std::byte> bytes = pattern(std::size_t{3} << 20U);
  std::vector<std::byte> into(bytes.size());
  const sampled moments(0, 3);  // an odd step: both sides cancel
  for (int round = moments.first; round < 30; round += moments.step) {
    request receive = receiver().start_receive(1, into);
    request send = sender().start_send(1, bytes);
    for (int i = 0; i < round * 3; ++i) pair_.sender_side().progress();
    (round % 2 == 0 ? send : receive).cancel();
    // A message that nobody waits for any more waits for somebody: it is thrown away.
    EXPECT_TRUE(pair_.until([&] {
      if (receive.done()) receiver().take(tag_match::any());
      return send.done() && receive.done();
    }));
    const std::error_code sent = send.error();
    const std::error_code received = receive.error();
    EXPECT_TRUE(!sent || sent == errc::canceled || sent == errc::message_refused) << sent;
    EXPECT_TRUE(!received || received == errc::canceled || received == errc::message_withdrawn)
        << received;
    if (!received) {
      EXPECT_TRUE(holds_pattern(into));
    }
  }
  request receive = receiver().start_receive(2, into);
  request send = sender().start_send(2, bytes);
  EXPECT_FALSE(outcome(receive));
  EXPECT_FALSE(outcome(send));
  EXPECT_TRUE(holds_pattern(into));
}

INSTANTIATE_TEST_SUITE_P(Messages, ConformanceC, testing::ValuesIn(every_message_pair()),
                         name_of_messages);
INSTANTIATE_TEST_SUITE_P(Adopted, ConformanceC, testing::ValuesIn(adopted_message_pairs()),
                         name_of_messages);

/// With little room.
class ConformanceCRoom : public ConformanceC {
 protected:
  ConformanceCRoom() : ConformanceC(64U << 10U) {}
};

TEST_P(ConformanceCRoom, C23_C25_FullIsToldAndSoIsRoom) {
  std::atomic<int> room{0};
  message_handlers handlers;
  handlers.on_writable = [&] { ++room; };
  sender().set_message_handlers(std::move(handlers));
  const std::vector<std::byte> bytes = pattern(1000);
  std::size_t sent = 0;
  std::error_code ec;
  while (sent < 10000) {
    sender().send(1, bytes, {.backpressure = backpressure::fail}, ec);
    if (ec) break;
    ++sent;
  }
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_LT(sent, 66U);
  EXPECT_EQ(room, 0);
  request waits = sender().start_send(2, bytes);
  for (std::size_t i = 0; i < sent; ++i) pair_.take(1);
  EXPECT_FALSE(outcome(waits));
  EXPECT_TRUE(pair_.until([&] { return room > 0; }));
  EXPECT_EQ(pair_.take(2).length(), 1000U);
}

TEST_P(ConformanceCRoom, C25_SlowReceiverIsNeverOverrun) {
  const std::vector<std::byte> bytes = pattern(3000);
  std::vector<request> sends;
  for (std::uint64_t i = 0; i < 500; ++i) sends.push_back(sender().start_send(i, bytes));
  for (std::uint64_t i = 0; i < 500; ++i) {
    std::vector<std::byte> into(3000);
    request receive = receiver().start_receive(tag_match::any(), into);
    ASSERT_FALSE(outcome(receive));
    EXPECT_EQ(receive.received().tag, i);
  }
  for (request& each : sends) EXPECT_FALSE(outcome(each));
}

INSTANTIATE_TEST_SUITE_P(Messages, ConformanceCRoom, testing::ValuesIn(every_message_pair()),
                         name_of_messages);
INSTANTIATE_TEST_SUITE_P(Adopted, ConformanceCRoom, testing::ValuesIn(adopted_message_pairs()),
                         name_of_messages);

/// Many peers of one worker, whose messages it does not take.
class ConformanceCPeers : public testing::TestWithParam<route> {};

TEST_P(ConformanceCPeers, G8_UntakenMessagesOfAllPeersAreBounded) {
  constexpr std::size_t number = std::size_t{1} << 20U;
  constexpr std::size_t count = 30;  // with a window of 4 MiB each
  context_options wanted = context_options_for(GetParam());
  wanted.features = feature::am | feature::wakeup;
  const context there(wanted);
  const context here(wanted);
  worker receiver(there, {.progress = progress_mode::sleeping_thread, .untaken_messages = number});
  worker sender(here);
  std::vector<endpoint> peers;
  for (std::size_t i = 0; i < count; ++i) peers.emplace_back(sender, receiver.address());
  for (endpoint& each : peers) each.wait_connected();
  const std::vector<std::byte> bytes = pattern(1000);
  const send_options options{.memory = send_memory::copied, .backpressure = backpressure::fail};
  std::size_t sent = 0;
  std::error_code ec;
  // Until there was no credit for a while, which comes of the receiver's own accord.
  for (auto last = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - last < 100ms; sender.progress()) {
    for (endpoint& each : peers) {
      each.post_send(1, bytes, 0, options, ec);
      EXPECT_TRUE(!ec || ec == errc::would_block) << ec.message();
      if (ec) continue;
      ++sent;
      last = std::chrono::steady_clock::now();
    }
  }
  EXPECT_GE(sent, count) << "each has credit for one";
  EXPECT_LE(sent * bytes.size(), number);
  for (std::size_t taken = 0; taken < sent; ++taken) {
    std::vector<std::byte> into(1000);
    request receive = receiver.start_receive(1, into);
    receive.wait();
    ASSERT_TRUE(holds_pattern(into)) << taken;
  }
  for (endpoint& each : peers) {
    each.send(2, bytes, {.until = send_until::reusable}, ec);
    EXPECT_FALSE(ec) << ec.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ConformanceCPeers,
                         testing::Values(route::tcp_by_address, route::shared_memory),
                         [](const auto& instance) { return to_string(instance.param); });

}  // namespace
}  // namespace ucx::test
