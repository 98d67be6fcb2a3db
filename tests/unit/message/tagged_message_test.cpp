// Messages with tags: what is received where, in which order, and how each of them ends.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/simulated/simulated_messages.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(TaggedMessage, ArrivesWhereItIsWaitedFor) {
  simulated_messages both;
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size, size);
    std::vector<std::byte> into = blank(size + 3);
    request receive = both.receiver().start_receive(size, into);
    both.sender.send(size, bytes);
    ASSERT_FALSE(both.outcome(receive)) << size;
    EXPECT_EQ(receive.received(), (message_info{size, size}));
    EXPECT_TRUE(holds_pattern(std::span(into).first(size), size)) << size;
    EXPECT_TRUE(all_bytes_are(std::span(into).subspan(size), untouched));
  }
}

TEST(TaggedMessage, IsReceivedByTheWorkerThatWaits) {
  simulated_messages both;
  both.sender.send(3, pattern(10));
  std::vector<std::byte> into(10);
  EXPECT_EQ(both.receiver().receive(3, into), (message_info{3, 10}));
  std::error_code ec;
  EXPECT_EQ(both.receiver().receive(4, into, {.timeout = 10ms}, ec), message_info());
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_THROW(both.receiver().receive(4, into, {.timeout = 10ms}), error);
}

TEST(TaggedMessage, WaitsForWhoReceivesItLater) {
  for (const bool lasting : {false, true}) {
    simulated_pair_options options;
    options.link.lasting_data = lasting;
    simulated_messages both(options);
    for (const std::size_t size : message_sizes) {
      const std::vector<std::byte> bytes = pattern(size, size);
      request send = both.sender.start_send(size, bytes);
      both.settle();
      std::vector<std::byte> into = blank(size);
      request receive = both.receiver().start_receive(size, into);
      EXPECT_FALSE(both.outcome(receive)) << size;
      EXPECT_FALSE(both.outcome(send)) << size;
      EXPECT_TRUE(holds_pattern(into, size)) << size;
    }
  }
}

TEST(TaggedMessage, GoesBackToo) {
  simulated_messages both;
  endpoint back = both.back();
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into = blank(size);
    request receive = both.sender.start_receive(7, into);
    request send = back.start_send(7, bytes);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(into));
  }
}

TEST(TaggedMessage, ReachesTheWorkerThatSentIt) {
  simulated_pair pair;
  endpoint itself(pair.owner, pair.owner.address());
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> bytes = pattern(size);
    std::vector<std::byte> into = blank(size);
    request receive = pair.owner.start_receive(size, into);
    itself.send(size, bytes);
    receive.wait();
    EXPECT_TRUE(holds_pattern(into)) << size;
  }
}

TEST(TaggedMessage, IsMatchedByTheBitsOfTheMask) {
  simulated_messages both;
  std::array<std::byte, 1> first{};
  std::array<std::byte, 1> second{};
  request low = both.receiver().start_receive({0x20, 0xf0}, first);
  request any = both.receiver().start_receive(tag_match::any(), second);
  both.sender.send(0x31, pattern(1, 1));
  both.sender.send(0x52f, pattern(1, 2));
  EXPECT_FALSE(both.outcome(any));
  EXPECT_EQ(any.received().tag, 0x31U);
  EXPECT_FALSE(both.outcome(low));
  EXPECT_EQ(low.received().tag, 0x52fU);
  EXPECT_TRUE(holds_pattern(second, 1));
  EXPECT_TRUE(holds_pattern(first, 2));
}

TEST(TaggedMessage, OrderIsThatOfTheStarts) {
  simulated_messages both;
  std::vector<std::vector<std::byte>> sent;
  std::vector<request> sends;
  for (std::size_t i = 0; i < 20; ++i) {
    // Long ones and short ones: those that have to be asked for are matched at their place too.
    sent.push_back(pattern(i % 3 == 0 ? 600000 + i : 10 + i, i));
    sends.push_back(both.sender.start_send(5, sent.back()));
  }
  for (std::size_t i = 0; i < 20; ++i) {
    std::vector<std::byte> into(700000);
    request receive = both.receiver().start_receive(5, into);
    ASSERT_FALSE(both.outcome(receive));
    ASSERT_EQ(receive.received().length, sent[i].size()) << i;
    EXPECT_TRUE(holds_pattern(std::span(into).first(sent[i].size()), i));
  }
  for (request& each : sends) EXPECT_FALSE(both.outcome(each));
}

TEST(TaggedMessage, ReceivesAreServedInTheirOrder) {
  simulated_messages both;
  std::vector<std::array<std::byte, 8>> into(10);
  std::vector<request> receives;
  for (auto& each : into) receives.push_back(both.receiver().start_receive(1, each));
  for (std::size_t i = 0; i < 10; ++i) both.sender.send(1, pattern(8, i));
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(both.outcome(receives[i]));
    EXPECT_TRUE(holds_pattern(into[i], i));
  }
}

TEST(TaggedMessage, TooLongIsTruncatedAndTellsItsLength) {
  simulated_messages both;
  for (const std::size_t size : {100U, 300000U}) {
    for (const bool waits : {true, false}) {
      std::vector<std::byte> into = blank(99);
      const std::vector<std::byte> bytes = pattern(static_cast<std::size_t>(size));
      request receive;
      if (waits) receive = both.receiver().start_receive(9, into);
      request send = both.sender.start_send(9, bytes);
      both.settle();
      if (!waits) receive = both.receiver().start_receive(9, into);
      EXPECT_EQ(both.outcome(receive), errc::message_truncated);
      EXPECT_EQ(receive.received(), (message_info{9, bytes.size()}));
      EXPECT_TRUE(all_bytes_are(into, untouched));
      // Of one that was asked for first its sender knows.
      EXPECT_EQ(both.outcome(send) == errc::message_truncated, size > 262144);
      EXPECT_FALSE(both.receiver().probe(9));
    }
  }
}

TEST(TaggedMessage, ShorterOneTellsItsLength) {
  simulated_messages both;
  std::vector<std::byte> into = blank(1000);
  request receive = both.receiver().start_receive(9, into);
  both.sender.send(9, pattern(10));
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_EQ(receive.received().length, 10U);
  EXPECT_TRUE(all_bytes_are(std::span(into).subspan(10), untouched));
}

TEST(TaggedMessage, IsProbedAndTaken) {
  simulated_messages both;
  EXPECT_FALSE(both.receiver().probe(tag_match::any()));
  EXPECT_FALSE(both.receiver().take(tag_match::any()));
  const std::vector<std::byte> big = pattern(1U << 20U, 2);
  both.sender.send(1, pattern(100, 1));
  request send = both.sender.start_send(2, big);
  both.settle();
  EXPECT_EQ(both.receiver().probe(tag_match::any()), (message_info{1, 100}));
  EXPECT_EQ(both.receiver().probe(2), (message_info{2, big.size()}));
  message two = both.take(2);
  EXPECT_FALSE(both.receiver().probe(2));
  EXPECT_FALSE(two.has_payload());
  EXPECT_TRUE(two.data().empty());
  EXPECT_FALSE(send.done());
  std::vector<std::byte> into = blank(big.size());
  two.receive(into);
  EXPECT_TRUE(holds_pattern(into, 2));
  EXPECT_FALSE(both.outcome(send));
  request again = two.start_receive(into);
  EXPECT_EQ(again.error(), errc::invalid_argument);
  message one = both.take(1);
  ASSERT_TRUE(one.has_payload());
  EXPECT_TRUE(holds_pattern(one.data(), 1));
  EXPECT_EQ(one.data().size(), 100U);
  std::vector<std::byte> copy(100);
  one.receive(copy);
  one.receive(copy);  // what is here can be had twice
  EXPECT_TRUE(holds_pattern(copy, 1));
}

TEST(TaggedMessage, ThrownAwayIsRefused) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(3, big);
  both.settle();
  { const message unwanted = both.take(3); }
  EXPECT_EQ(both.outcome(send), errc::message_refused);
}

TEST(TaggedMessage, IsGatheredAndScattered) {
  simulated_messages both;
  for (const std::size_t size : {std::size_t{10}, std::size_t{40000}, std::size_t{900000}}) {
    const std::vector<std::byte> whole = pattern(size * 3);
    const std::span<const std::byte> all(whole);
    // Runs of all kinds: empty ones, tiny ones, one over several segments.
    const std::array<std::span<const std::byte>, 5> from{
        all.first(1), all.first(0), all.subspan(1, size), all.subspan(1 + size, 4),
        all.subspan(5 + size)};
    std::vector<std::byte> landed = blank(size * 3);
    const std::span<std::byte> out(landed);
    const std::array<std::span<std::byte>, 4> into{out.first(size - 3), out.subspan(size - 3, 0),
                                                   out.subspan(size - 3, 2), out.subspan(size - 1)};
    request receive = both.receiver().start_receive(4, into);
    request send = both.sender.start_send(4, from);
    EXPECT_FALSE(both.outcome(send));
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_TRUE(holds_pattern(landed)) << size;
  }
}

TEST(TaggedMessage, MakesMemoryOfItsLength) {
  simulated_messages both;
  for (const std::size_t size : {0U, 5U, 300000U}) {
    buffer made;
    request receive = both.receiver().start_receive(4, {made, 1U << 20U});
    const std::vector<std::byte> bytes = pattern(size);
    both.sender.send(4, bytes);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_EQ(made.size(), size);
    EXPECT_TRUE(holds_pattern(made.bytes()));
  }
  buffer made;
  request receive = both.receiver().start_receive(4, {made, 99});
  both.sender.send(4, pattern(100));
  EXPECT_EQ(both.outcome(receive), errc::message_truncated);
  EXPECT_FALSE(made);
}

TEST(TaggedMessage, SenderMayWaitForItsMatch) {
  simulated_messages both;
  for (const std::size_t size : {0U, 10U, 300000U}) {
    const std::vector<std::byte> bytes = pattern(size);
    request send = both.sender.start_send(6, bytes, {.until = send_until::matched});
    both.settle();
    EXPECT_FALSE(send.done());
    std::vector<std::byte> into(size);
    request receive = both.receiver().start_receive(6, into);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(into));
    request waited = both.receiver().start_receive(6, into);
    both.sender.send(6, bytes, {.until = send_until::matched});
    EXPECT_FALSE(both.outcome(waited));
  }
}

TEST(TaggedMessage, CopiedMemoryIsFreeWhenTheCallReturns) {
  simulated_pair_options options;
  options.link.inline_limit = 0;  // UCX takes everything later
  simulated_messages both(options);
  for (const std::size_t size : {100U, 300000U}) {
    std::vector<std::byte> bytes = pattern(size);
    request send = both.sender.start_send(6, bytes, {.memory = send_memory::copied});
    EXPECT_EQ(send.done(), size <= 262144);  // a short one is done at once
    std::fill(bytes.begin(), bytes.end(), untouched);
    std::vector<std::byte> into(size);
    request receive = both.receiver().start_receive(6, into);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(into));
  }
}

TEST(TaggedMessage, DeadlineEndsAReceiveAndNothingElse) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  std::error_code ec;
  request receive = both.receiver().start_receive(1, into, {.timeout = 10ms});
  EXPECT_EQ(both.outcome(receive), errc::timed_out);
  EXPECT_EQ(receive.received(), message_info());
  both.sender.send(1, pattern(10));
  both.settle();
  EXPECT_TRUE(all_bytes_are(into, untouched));
  EXPECT_EQ(both.take(1).length(), 10U);
}

TEST(TaggedMessage, UnreceivedSendEndsAtItsDeadline) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(1, big, {.timeout = 10ms});
  both.settle();
  EXPECT_TRUE(both.receiver().probe(1));
  EXPECT_EQ(both.outcome(send), errc::timed_out);
  both.settle();
  EXPECT_FALSE(both.receiver().probe(1));
  EXPECT_FALSE(both.sender.status());
}

TEST(TaggedMessage, WithdrawnInTheHandOfItsReceiverIsAnError) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(1, big);
  message held = both.take(1);
  send.cancel();
  EXPECT_EQ(both.outcome(send), errc::canceled);
  both.settle();
  std::vector<std::byte> into = blank(big.size());
  request receive = held.start_receive(into);
  EXPECT_EQ(both.outcome(receive), errc::message_withdrawn);
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

/// At whatever moment either side gives up, both end, once, and the next message comes whole.
TEST(TaggedMessage, CancelAtEveryMomentEndsBothSides) {
  for (const bool sender_cancels : {true, false}) {
    const sampled moments(sender_cancels ? 0 : 3);
    for (int moment = moments.first; moment < 40; moment += moments.step) {
      simulated_pair_options options;
      options.link.latency = 10us;
      simulated_messages both(options);
      const std::vector<std::byte> big = pattern(3U << 20U, 1);
      std::vector<std::byte> into = blank(big.size());
      int ends = 0;
      request receive = both.receiver().start_receive(1, into, {.timeout = 1s});
      request send = both.sender.start_send(1, big, {.timeout = 1s});
      receive.then([&](std::error_code) { ++ends; });
      send.then([&](std::error_code) { ++ends; });
      both.network().advance(moment * 25us);
      (sender_cancels ? send : receive).cancel();
      const std::error_code sent = both.outcome(send);
      const std::error_code came = both.outcome(receive);
      both.settle();
      EXPECT_EQ(ends, 2) << moment;
      if (!came) {
        EXPECT_TRUE(holds_pattern(into, 1));
      } else if (sender_cancels) {
        EXPECT_EQ(sent, errc::canceled) << moment;
        EXPECT_TRUE(came == errc::message_withdrawn || came == errc::timed_out) << came.message();
      } else {
        EXPECT_EQ(came, errc::canceled) << moment;
        EXPECT_TRUE(!sent || sent == errc::message_refused || sent == errc::timed_out) << sent;
      }
      EXPECT_FALSE(both.sender.status()) << moment;
      both.receiver().take(tag_match::any());
      std::vector<std::byte> next = blank(300000);
      request receive_next = both.receiver().start_receive(2, next);
      both.sender.send(2, pattern(300000, 2));
      EXPECT_FALSE(both.outcome(receive_next));
      EXPECT_TRUE(holds_pattern(next, 2));
    }
  }
}

TEST(TaggedMessage, DestroyedRequestLetsGoOfItsMemory) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = both.sender.start_send(1, big);
  {
    std::vector<std::byte> into(big.size());
    request receive = both.receiver().start_receive(1, into);
    both.network().advance(100us);
  }
  std::error_code ec;
  EXPECT_EQ(both.outcome(send), errc::message_refused);
  {
    const std::vector<std::byte> other = pattern(1U << 20U);
    std::vector<std::byte> into(other.size());
    request receive = both.receiver().start_receive(2, into);
    {
      request unfinished = both.sender.start_send(2, other);
      both.network().advance(20us);
    }
    EXPECT_EQ(both.outcome(receive), errc::message_withdrawn);
  }
}

TEST(TaggedMessage, ReceivesKeepTheirConnectionWhenItsHandleIsGone) {
  simulated_messages both;
  endpoint back = both.back();
  std::vector<std::byte> into = blank(10);
  request first = both.sender.start_receive(7, into);
  request second = both.sender.start_receive(8, into);
  request of_stream = both.sender.start_stream_receive(into, stream_amount::some);
  endpoint(std::move(both.sender));
  first = request();
  of_stream = request();
  back.send(8, pattern(10));
  EXPECT_FALSE(both.outcome(second));
  EXPECT_EQ(into, pattern(10));
  both.settle(100ms);
  EXPECT_FALSE(back.status());
  second = request();
  EXPECT_TRUE(both.network().run_until([&] { return static_cast<bool>(back.status()); }));
}

TEST(TaggedMessage, DeathOfTheSenderEndsWhatWasOnItsWay) {
  for (int moment = 0; moment < 20; ++moment) {
    simulated_pair_options options;
    simulated_messages both(options);
    const std::vector<std::byte> big = pattern(3U << 20U);
    std::vector<std::byte> into = blank(big.size());
    std::vector<std::byte> other = blank(10);
    endpoint back = both.back();
    request receive = both.receiver().start_receive(1, into);
    request from_it = back.start_receive(2, other);
    request send = both.sender.start_send(1, big);
    both.network().advance(moment * 40us);
    both.pair.reader_process.kill();
    const bool all_here = receive.done();
    const std::error_code came = both.outcome(receive);
    if (!all_here) {
      EXPECT_TRUE(came == errc::connection_reset || came == errc::timed_out) << came;
    }
    EXPECT_EQ(both.outcome(from_it), errc::connection_reset);
    send.cancel();
    request from_dead = back.start_receive(2, other);
    EXPECT_EQ(from_dead.error(), errc::connection_reset);
  }
}

TEST(TaggedMessage, DeathOfTheReceiverEndsSends) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(3U << 20U);
  request announced = both.sender.start_send(1, big);
  both.network().advance(200us);
  both.pair.owner_process.kill();
  EXPECT_EQ(both.outcome(announced), errc::connection_reset);
  request later = both.sender.start_send(1, pattern(1));
  EXPECT_EQ(later.error(), errc::connection_reset);
}

TEST(TaggedMessage, SilentReceiverIsNoticedByItsHeart) {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1h;
  options.reader_worker.heartbeat_timeout = 2s;
  simulated_messages both(options);
  const std::vector<std::byte> big = pattern(3U << 20U);
  both.pair.owner_process.stop();
  std::array<std::byte, 1> into{};
  request receive = both.sender.start_receive(8, into);
  request announced = both.sender.start_send(1, big);
  const auto begin = both.network().now();
  EXPECT_EQ(both.outcome(announced), errc::connection_reset);
  EXPECT_EQ(both.outcome(receive), errc::connection_reset);
  EXPECT_LT(both.network().now() - begin, 3s);
  both.pair.owner_process.resume();
}

TEST(TaggedMessage, WhatCameBeforeItsSenderLeftCanBeReceived) {
  simulated_messages both;
  both.sender.send(1, pattern(100));
  both.sender.close();
  both.settle(3s);
  std::vector<std::byte> into(100);
  request receive = both.receiver().start_receive(1, into);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
}

/// Who receives one message after the other must not get the one behind it for it.
TEST(TaggedMessage, AnnouncedOneThatIsLostKeepsItsPlace) {
  for (const bool of_the_worker : {false, true}) {
    for (const bool by_hand : {false, true}) {
      SCOPED_TRACE(testing::Message() << "worker " << of_the_worker << ", taken " << by_hand);
      simulated_messages both;
      std::optional<endpoint> back = both.back();
      const std::vector<std::byte> big = pattern(1U << 20U);
      both.sender.send(7, pattern(10, 1));
      const request lost = both.sender.start_send(7, big);
      both.sender.send(8, pattern(20, 2));
      both.sender.send(7, pattern(30, 3));
      both.settle();
      both.pair.reader_process.kill();
      both.settle(5s);
      EXPECT_EQ(back->state(), connection_state::failed);
      if (of_the_worker) back.reset();  // the connection's object goes, too
      std::vector<std::byte> into = blank(1U << 20U);
      const auto start = [&] {
        if (!by_hand) {
          return of_the_worker ? both.receiver().start_receive(7, into)
                               : back->start_receive(7, into);
        }
        std::optional<message> taken = of_the_worker ? both.receiver().take(7) : back->take(7);
        return taken ? taken->start_receive(into) : request();
      };
      request first = start();
      EXPECT_FALSE(both.outcome(first));
      EXPECT_TRUE(holds_pattern(std::span(into).first(10), 1));
      into = blank(into.size());
      request second = start();
      EXPECT_EQ(both.outcome(second), errc::connection_reset);
      EXPECT_EQ(second.received(), (message_info{7, 1U << 20U}));
      EXPECT_TRUE(all_bytes_are(into, untouched));
      request third = start();
      EXPECT_FALSE(both.outcome(third));
      EXPECT_EQ(third.received(), (message_info{7, 30}));
      EXPECT_TRUE(holds_pattern(std::span(into).first(30), 3));
      EXPECT_FALSE(both.receiver().probe(7));
      EXPECT_TRUE(both.receiver().probe(8)) << "nobody asked for it";
    }
  }
}

TEST(TaggedMessage, CloseWaitsUntilTheReceiverHasTheMessage) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  std::vector<std::byte> into(big.size());
  request receive = both.receiver().start_receive(1, into);
  request send = both.sender.start_send(1, big);
  both.sender.close();
  EXPECT_FALSE(both.outcome(send));
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
}

TEST(TaggedMessage, AbortEndsEverythingOnce) {
  simulated_messages both;
  const std::vector<std::byte> big = pattern(1U << 20U);
  std::array<std::byte, 1> into{};
  request send = both.sender.start_send(1, big);
  request receive = both.sender.start_receive(1, into);
  std::error_code ec;
  both.sender.close(close_mode::abort, ec);
  EXPECT_EQ(send.error(), errc::canceled);
  EXPECT_EQ(receive.error(), errc::canceled);
  request later = both.sender.start_send(1, big);
  EXPECT_EQ(later.error(), errc::closed);
  later = both.sender.start_receive(1, into);
  EXPECT_EQ(later.error(), errc::closed);
}

TEST(TaggedMessage, NeedsActiveMessages) {
  simulated_pair_options options;
  options.reader_context.features = feature::rma | feature::wakeup;
  simulated_pair pair(options);
  endpoint one_sided = pair.connect();
  std::array<std::byte, 1> one{};
  EXPECT_EQ(one_sided.start_send(1, one).error(), errc::feature_disabled);
  EXPECT_EQ(one_sided.start_receive(1, one).error(), errc::feature_disabled);
  EXPECT_EQ(pair.reader.start_receive(1, one).error(), errc::feature_disabled);
  EXPECT_EQ(one_sided.start_stream_send(one).error(), errc::feature_disabled);
  EXPECT_EQ(one_sided.start_send(active_message{1}, one).error(), errc::feature_disabled);
  try {
    one_sided.send(1, one);
    ADD_FAILURE();
  } catch (const error& failed) {
    EXPECT_NE(std::string(failed.what()).find("feature::am"), std::string::npos) << failed.what();
  }
  EXPECT_THROW(pair.reader.on_message(1, [](message) {}), error);
}

}  // namespace
}  // namespace ucx::test
