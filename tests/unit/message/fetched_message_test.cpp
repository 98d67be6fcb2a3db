// Long messages between hosts with RMA hardware: the receiver has the hardware read them where they
// lie, unless something is in the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucp/resource_error.hpp"
#include "ucx/buffer.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t least_fetched = std::size_t{1} << 20U;
constexpr std::size_t fetched_size = std::size_t{8} << 20U;

simulated_pair_options rma_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
  return options;
}

class FetchedMessage : public testing::Test {
 protected:
  explicit FetchedMessage(const simulated_pair_options& options = rma_hardware())
      : both_(options) {}
  fake_process& sending() { return both_.pair.reader_process; }
  fake_process& receiving() { return both_.pair.owner_process; }
  std::uint64_t gets() { return receiving().count(call::get); }
  bool run_until_gets(std::uint64_t count) {
    return both_.network().run_until([&] { return gets() >= count; });
  }
  /// A message comes, and nothing is left of it.
  void expect_transfer(std::size_t size = fetched_size) {
    const std::vector<std::byte> from = pattern(size, size);
    std::vector<std::byte> into = blank(size);
    request receive = both_.receiver().start_receive(7, into);
    request send = both_.sender.start_send(7, from);
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_FALSE(both_.outcome(send));
    EXPECT_EQ(receive.received().length, size);
    EXPECT_TRUE(holds_pattern(into, size));
    expect_nothing_lent();
  }
  void expect_nothing_lent() {
    EXPECT_EQ(both_.network().live().memories, 0U);
    EXPECT_EQ(both_.network().live().rkeys, 0U);
    EXPECT_EQ(both_.network().live().rkey_buffers, 0U);
  }
  /// Does `what` inside a handler of `driver`.
  template <class What>
  void in_a_handler(worker& driver, const What& what) {
    bool ran = false;
    driver.post([&] {
      what();
      ran = true;
    });
    driver.progress();
    ASSERT_TRUE(ran);
  }
  std::uint64_t sent() { return both_.network().bytes(call::am_send); }

  simulated_messages both_;
};

TEST_F(FetchedMessage, IsReadByTheHardware) {
  for (const std::size_t size :
       {least_fetched, least_fetched + 1, 2 * least_fetched, fetched_size - 1}) {
    SCOPED_TRACE(size);
    const std::uint64_t bytes = sent();
    const std::uint64_t before = gets();
    const std::uint64_t forgotten = sending().count(call::forget_registration);
    const std::uint64_t forgotten_there = receiving().count(call::forget_registration);
    expect_transfer(size);
    EXPECT_EQ(sent() - bytes, 0U) << "no payload but what the hardware reads";
    EXPECT_EQ(gets() - before, (size + least_fetched - 1) / least_fetched);
    EXPECT_EQ(sending().count(call::forget_registration) - forgotten, 2U)
        << "its own, and that of the page that is registered next";
    EXPECT_EQ(receiving().count(call::forget_registration) - forgotten_there, 2U);
  }
}

TEST_F(FetchedMessage, IsToldInTheReport) {
  EXPECT_EQ(both_.sender.report().long_messages, transfer_method::rma);
  EXPECT_EQ(both_.back().report().long_messages, transfer_method::rma);
}

TEST_F(FetchedMessage, WaitsForItsReceiver) {
  const std::vector<std::byte> from = pattern(fetched_size);
  request send = both_.sender.start_send(7, from, {.until = send_until::reusable});
  both_.settle();
  EXPECT_FALSE(send.done());
  EXPECT_EQ(gets(), 0U);
  message taken = both_.take(7);
  EXPECT_EQ(taken.length(), fetched_size);
  EXPECT_FALSE(taken.has_payload());
  buffer into(fetched_size);
  taken.receive(into.bytes());
  EXPECT_TRUE(holds_pattern(into.bytes()));
  EXPECT_FALSE(both_.outcome(send));
  EXPECT_GT(gets(), 0U);
}

TEST_F(FetchedMessage, ActiveMessagesHaveTheirHeadersOnly) {
  std::vector<std::byte> header;
  buffer into;
  request receive;
  both_.receiver().on_message(3, [&](message active) {
    header.assign(active.header().begin(), active.header().end());
    into = buffer(active.length());
    receive = active.start_receive(into.bytes());
  });
  for (const std::size_t length : {0U, 60U, 120U, 121U, 1000U, 4096U}) {
    SCOPED_TRACE(length);
    const std::vector<std::byte> from = pattern(fetched_size, length);
    request send = both_.sender.start_send(active_message{3, pattern(length, 1)}, from);
    EXPECT_FALSE(both_.outcome(send));
    EXPECT_EQ(header, pattern(length, 1));
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_TRUE(holds_pattern(into.bytes(), length));
  }
  EXPECT_EQ(gets(), 6 * (fetched_size / least_fetched));
}

TEST_F(FetchedMessage, GoesInPiecesWhereTheSendersMemoryIsNoRun) {
  const std::vector<std::byte> from = pattern(fetched_size);
  const std::array<std::span<const std::byte>, 2> runs{std::span(from).first(fetched_size / 2),
                                                       std::span(from).last(fetched_size / 2)};
  std::vector<std::byte> into = blank(fetched_size);
  request receive = both_.receiver().start_receive(7, into);
  both_.sender.send(7, std::span<const std::span<const std::byte>>(runs));
  EXPECT_FALSE(both_.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(gets(), 0U);
}

TEST_F(FetchedMessage, GoesInPiecesWhereTheReceiversMemoryIsNoRun) {
  const std::vector<std::byte> from = pattern(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  const std::array<std::span<std::byte>, 2> runs{std::span(into).first(fetched_size / 2),
                                                 std::span(into).last(fetched_size / 2)};
  request receive = both_.receiver().start_receive(7, std::span<const std::span<std::byte>>(runs));
  request send = both_.sender.start_send(7, from);
  EXPECT_FALSE(both_.outcome(receive));
  EXPECT_FALSE(both_.outcome(send));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(gets(), 0U);
  expect_nothing_lent();
}

TEST_F(FetchedMessage, GoesInPiecesWhereItIsShort) {
  expect_transfer(least_fetched - 1);
  EXPECT_EQ(gets(), 0U);
  EXPECT_EQ(sending().count(call::mem_map), 0U);
}

TEST_F(FetchedMessage, GoesInPiecesWhereUcxGivesNoKey) {
  for (const call which : {call::mem_map, call::rkey_pack}) {
    sending().faults().fail(which, UCS_ERR_IO_ERROR);
    expect_transfer();
    EXPECT_EQ(gets(), 0U);
  }
  expect_transfer();
  EXPECT_GT(gets(), 0U) << "the next one is read as ever";
}

TEST_F(FetchedMessage, GoesInPiecesWhereUcxRefusesTheKey) {
  receiving().faults().fail(call::ep_rkey_unpack, UCS_ERR_UNREACHABLE);
  expect_transfer();
  EXPECT_EQ(gets(), 0U);
}

TEST_F(FetchedMessage, GoesInPiecesIntoUnregisteredMemory) {
  for (unsigned nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    receiving().faults().fail(call::get, UCS_ERR_IO_ERROR, nth);
    expect_transfer();
    EXPECT_FALSE(both_.sender.status());
  }
}

TEST_F(FetchedMessage, GoesInPiecesWhereRegisteringFailsLate) {
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    for (unsigned nth = 1; nth <= 3; ++nth) {
      SCOPED_TRACE(nth);
      receiving().faults().fail_late(call::get, status, nth);
      expect_transfer();
      EXPECT_FALSE(both_.sender.status());
    }
  }
}

TEST_F(FetchedMessage, LeavesRoomToLockAWorker) {
  both_.network().link().lockable = fetched_size + detail::memory_locked_by_worker - 1;
  expect_transfer();
  EXPECT_EQ(gets(), 0U);
  EXPECT_EQ(sending().count(call::mem_map), 0U);
  ++both_.network().link().lockable;
  expect_transfer();
  EXPECT_GT(gets(), 0U);
}

TEST_F(FetchedMessage, ThatTheHardwareCanNotReadLosesItsConnection) {
  const std::vector<std::byte> from = pattern(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  receiving().faults().fail_late(call::get, UCS_ERR_ENDPOINT_TIMEOUT, 2);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, from);
  EXPECT_EQ(both_.outcome(receive), errc::connection_reset);
  EXPECT_TRUE(both_.outcome(send));
  expect_nothing_lent();
}

TEST_F(FetchedMessage, MemoryIsTheSendersAgainOnceItGaveUp) {
  for (std::uint64_t begun = 0; begun < 8; ++begun) {
    SCOPED_TRACE(begun);
    auto from = std::make_unique<std::vector<std::byte>>(pattern(fetched_size, begun));
    std::vector<std::byte> into = blank(fetched_size);
    const std::uint64_t before = gets();
    request receive = both_.receiver().start_receive(7, into);
    request send = both_.sender.start_send(7, *from);
    ASSERT_TRUE(
        both_.network().run_until([&] { return receive.done() || gets() - before >= begun; }));
    send.cancel();
    EXPECT_FALSE(send.done()) << "it may still be read";
    const std::error_code gone = both_.outcome(send);
    EXPECT_EQ(both_.network().live().memories, 0U) << "the key counts no more";
    std::fill(from->begin(), from->end(), std::byte{0xee});
    from.reset();
    const std::error_code came = both_.outcome(receive);
    EXPECT_TRUE(!came || came == errc::message_withdrawn) << came;
    EXPECT_TRUE(!gone || gone == errc::canceled) << gone;
    if (!came) {
      EXPECT_TRUE(holds_pattern(into, begun)) << "all of it, or an error";
    }
  }
  expect_transfer();
  EXPECT_FALSE(both_.sender.status());
}

TEST_F(FetchedMessage, ThatNobodyWaitsForIsGivenBackByTheReceiver) {
  const std::vector<std::byte> from = pattern(fetched_size);
  request send = both_.sender.start_send(7, from);
  both_.settle();
  send.cancel();
  EXPECT_FALSE(send.done());
  EXPECT_EQ(both_.outcome(send), errc::canceled);
  EXPECT_FALSE(both_.receiver().probe(7));
  expect_nothing_lent();
  expect_transfer();
}

TEST_F(FetchedMessage, ThatTheProgramHoldsIsGivenBackByTheReceiver) {
  const std::vector<std::byte> from = pattern(fetched_size);
  request send = both_.sender.start_send(7, from);
  message taken = both_.take(7);
  send.cancel();
  EXPECT_EQ(both_.outcome(send), errc::canceled);
  buffer into(fetched_size);
  std::error_code ec;
  taken.receive(into.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::message_withdrawn);
}

TEST_F(FetchedMessage, OfABufferGoesHomeWhenItIsNotReadAnyMore) {
  buffer whole(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, std::move(whole));
  ASSERT_TRUE(run_until_gets(2));
  send.cancel();
  EXPECT_FALSE(send.done());
  EXPECT_EQ(both_.outcome(send), errc::canceled);
  EXPECT_TRUE(both_.outcome(receive));
}

TEST_F(FetchedMessage, OfABufferMayBeDroppedInAHandler) {
  buffer whole(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  receiving().faults().delay(call::get, 100ms, 2);
  receiving().faults().delay(call::get, 100ms, 3);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, std::move(whole));
  ASSERT_TRUE(run_until_gets(3));
  const auto begin = both_.network().now();
  in_a_handler(both_.pair.reader, [&] { send = request(); });
  EXPECT_LT(both_.network().now() - begin, 1ms);
  EXPECT_FALSE(both_.sender.status());
  EXPECT_EQ(both_.network().live().memories, 1U) << "it may still be read";
  EXPECT_EQ(both_.outcome(receive), errc::message_withdrawn);
  both_.settle();
  expect_nothing_lent();
  EXPECT_FALSE(both_.sender.status());
  expect_transfer();
}

TEST_F(FetchedMessage, OfABufferThatWasDroppedIsNotKeptForEver) {
  request send = both_.sender.start_send(7, buffer(fetched_size));
  both_.settle();
  receiving().stop();
  in_a_handler(both_.pair.reader, [&] { send = request(); });
  EXPECT_FALSE(both_.sender.status());
  EXPECT_TRUE(both_.network().run_until([&] { return both_.network().live().memories == 0; }, 60s));
  receiving().resume();
  both_.settle();
}

TEST_F(FetchedMessage, MayBeDroppedInAHandlerIfThePeerAnswers) {
  for (const bool sender_drops : {true, false}) {
    SCOPED_TRACE(sender_drops);
    std::vector<std::byte> from = pattern(fetched_size);
    std::vector<std::byte> into = blank(fetched_size);
    const std::uint64_t before = gets();
    request receive = both_.receiver().start_receive(7, into);
    request send = both_.sender.start_send(7, from);
    ASSERT_TRUE(run_until_gets(before + 3));
    if (sender_drops) {
      in_a_handler(both_.pair.reader, [&] { send = request(); });
      std::fill(from.begin(), from.end(), std::byte{0xee});
      EXPECT_EQ(both_.outcome(receive), errc::message_withdrawn);
    } else {
      in_a_handler(both_.receiver(), [&] { receive = request(); });
      std::fill(into.begin(), into.end(), std::byte{0xee});
      EXPECT_EQ(both_.outcome(send), errc::message_refused);
      EXPECT_TRUE(all_bytes_are(into, std::byte{0xee}));
    }
    EXPECT_FALSE(both_.sender.status());
    expect_nothing_lent();
  }
  expect_transfer();
}

TEST_F(FetchedMessage, DroppedInAHandlerEndsASilentPeer) {
  const std::vector<std::byte> from = pattern(fetched_size);
  request send = both_.sender.start_send(7, from);
  both_.settle();
  receiving().stop();
  const auto begin = both_.network().now();
  in_a_handler(both_.pair.reader, [&] { send = request(); });
  EXPECT_LT(both_.network().now() - begin, 1s);
  EXPECT_EQ(both_.sender.status(), errc::connection_reset);
  EXPECT_EQ(both_.network().live().memories, 0U) << "the memory is the caller's again";
  receiving().resume();
  both_.settle();
}

TEST_F(FetchedMessage, IsGivenUpWhenTheHardwareHasEnded) {
  for (std::uint64_t begun = 1; begun < 8; ++begun) {
    SCOPED_TRACE(begun);
    const std::vector<std::byte> from = pattern(fetched_size, begun);
    auto into = std::make_unique<std::vector<std::byte>>(fetched_size);
    const std::uint64_t before = gets();
    request receive = both_.receiver().start_receive(7, *into);
    request send = both_.sender.start_send(7, from);
    ASSERT_TRUE(both_.network().run_until([&] { return gets() - before >= begun; }));
    const std::uint64_t posted = gets();
    receive.cancel();
    EXPECT_FALSE(receive.done()) << "UCX has the memory";
    const std::error_code came = both_.outcome(receive);
    EXPECT_EQ(gets(), posted) << "it reads no more";
    into.reset();
    if (came) {
      EXPECT_EQ(came, errc::canceled);
      EXPECT_EQ(both_.outcome(send), errc::message_refused);
    }
    both_.outcome(send);
    expect_nothing_lent();
  }
  EXPECT_FALSE(both_.sender.status());
}

TEST_F(FetchedMessage, DeadlineOfTheReceiveCountsWhileItIsRead) {
  const std::vector<std::byte> from = pattern(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  receiving().faults().delay(call::get, 100ms, 2);
  receiving().faults().delay(call::get, 100ms, 3);
  request receive = both_.receiver().start_receive(7, into, {.timeout = 20ms});
  request send = both_.sender.start_send(7, from);
  EXPECT_EQ(both_.outcome(receive), errc::timed_out);
  EXPECT_EQ(both_.outcome(send), errc::message_refused);
  EXPECT_FALSE(both_.sender.status());
}

TEST_F(FetchedMessage, ThatDoesNotEndEndsItsConnection) {
  for (const bool sender_cancels : {true, false}) {
    simulated_messages both(rma_hardware());
    const std::vector<std::byte> from = pattern(fetched_size);
    std::vector<std::byte> into = blank(fetched_size);
    both.pair.owner_process.faults().delay(call::get, 1h, 2);
    request receive = both.receiver().start_receive(7, into);
    request send = both.sender.start_send(7, from);
    ASSERT_TRUE(
        both.network().run_until([&] { return both.pair.owner_process.count(call::get) >= 3; }));
    (sender_cancels ? send : receive).cancel();
    EXPECT_FALSE(receive.done());
    EXPECT_TRUE(both.network().run_until([&] { return send.done() && receive.done(); }, 60s));
    EXPECT_TRUE(receive.error());
    EXPECT_TRUE(send.error());
  }
}

TEST_F(FetchedMessage, IsReadOfASenderThatStoppedAndEndsWithItsHeart) {
  const std::vector<std::byte> from = pattern(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, from);
  ASSERT_TRUE(run_until_gets(3));
  sending().stop();
  EXPECT_TRUE(both_.network().run_until([&] { return receive.done(); }, 60s));
  sending().resume();
  EXPECT_TRUE(both_.network().run_until([&] { return send.done(); }, 60s));
  if (!receive.error()) {
    EXPECT_TRUE(holds_pattern(into));
  }
}

TEST_F(FetchedMessage, IsTheSendersAgainAfterAWhile) {
  const std::vector<std::byte> from = pattern(fetched_size);
  std::vector<std::byte> into = blank(fetched_size);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, from);
  ASSERT_TRUE(run_until_gets(3));
  receiving().stop();
  send.cancel();
  EXPECT_FALSE(send.done());
  EXPECT_TRUE(both_.network().run_until([&] { return send.done(); }, 60s));
  EXPECT_EQ(both_.network().live().memories, 0U);
  receiving().resume();
  EXPECT_TRUE(both_.outcome(receive)) << "it has lost the connection";
}

TEST(FetchedMessageEnd, ComesWithItsConnection) {
  enum class event { sender_closes, receiver_closes, sender_dies, receiver_dies };
  for (const event what :
       {event::sender_closes, event::receiver_closes, event::sender_dies, event::receiver_dies}) {
    for (const std::uint64_t begun : {1U, 3U}) {
      SCOPED_TRACE(static_cast<int>(what));
      simulated_messages both(rma_hardware());
      endpoint back = both.back();
      const std::vector<std::byte> from = pattern(fetched_size);
      std::vector<std::byte> into = blank(fetched_size);
      request receive = both.receiver().start_receive(7, into);
      request send = both.sender.start_send(7, from);
      fake_process& reading = both.pair.owner_process;
      ASSERT_TRUE(both.network().run_until([&] { return reading.count(call::get) >= begun; }));
      if (what == event::sender_closes) both.sender.close(close_mode::abort);
      if (what == event::receiver_closes) back.close(close_mode::abort);
      if (what == event::sender_dies) both.pair.reader_process.kill();
      if (what == event::receiver_dies) reading.kill();
      if (what == event::sender_closes) {
        EXPECT_TRUE(send.done());
      }
      if (what == event::receiver_closes) {
        EXPECT_TRUE(receive.done());
      }
      const auto ended = [&] {
        return (what == event::sender_dies || send.done()) &&
               (what == event::receiver_dies || receive.done());
      };
      EXPECT_TRUE(both.network().run_until(ended));
      if (what != event::receiver_dies) {
        EXPECT_TRUE(receive.error());
      }
      if (what != event::sender_dies) {
        EXPECT_TRUE(send.error());
      }
    }
  }
}

TEST(WithdrawnMessage, DoesNotOvertakeItsAnnouncement) {
  for (const simulated_pair_options& options : {simulated_pair_options(), rma_hardware()}) {
    SCOPED_TRACE(options.link.emulated_rma);
    simulated_messages both(options);
    both.settle();
    const std::vector<std::byte> from = pattern(fetched_size);
    both.network().link().latency = 10ms;
    both.pair.reader_process.faults().delay(call::am_send, 20ms);  // until UCX says that it left
    request send = both.sender.start_send(7, from);
    both.settle();
    both.network().link().latency = 10us;  // what is sent now is faster
    send.cancel();
    both.settle(30ms);
    EXPECT_FALSE(both.receiver().probe(7)) << "the receiver has heard that it is withdrawn";
    EXPECT_TRUE(send.done());
    EXPECT_EQ(send.error(), errc::canceled);
    EXPECT_FALSE(both.sender.status());
    EXPECT_EQ(both.network().live().memories, 0U);
  }
}

/// Sides of which one has not all that it takes.
TEST(FetchedMessageElsewhere, IsNotOfferedWithoutTheHardware) {
  std::vector<simulated_pair_options> all(4, rma_hardware());
  all[0].link.resources = {"self/memory0", "tcp/lo"};
  all[1].link.resources = {"self/memory0", "ud_verbs/rxe0:1"};
  all[2].owner_context.features = feature::am | feature::wakeup;
  all[3].reader_context.features = feature::am | feature::wakeup;
  for (const simulated_pair_options& options : all) {
    SCOPED_TRACE(&options - all.data());
    simulated_messages both(options);
    EXPECT_EQ(both.sender.report().long_messages, transfer_method::message);
    const std::vector<std::byte> from = pattern(fetched_size);
    std::vector<std::byte> into = blank(fetched_size);
    request receive = both.receiver().start_receive(7, into);
    both.sender.send(7, from);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_TRUE(holds_pattern(into));
    EXPECT_EQ(both.network().count(call::get), 0U);
    EXPECT_EQ(both.network().count(call::mem_map), 0U);
  }
}

TEST(FetchedMessageElsewhere, IsNamedInTheLog) {
  simulated_pair_options options = rma_hardware();
  std::vector<std::string> lines;
  options.reader_context.log.level = log_level::info;
  options.reader_context.log.sink = [&](log_level, std::string_view line) {
    lines.emplace_back(line);
  };
  const simulated_messages both(options);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& each) {
    return mentions(each, "long messages by rma");
  }));
}

}  // namespace
}  // namespace ucx::test
