// Long messages on one host: their receiver reads them where they lie, unless something is in the
// way.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/process_reading.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "wire/cma_offer.hpp"
#include "wire/parcel.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::parcel;
using detail::parcel_code;

constexpr std::size_t sent_size = std::size_t{5} << 20U;  // several rounds' worth

/// Neither side was made with the system's copy between processes.
simulated_pair_options without_cma() {
  simulated_pair_options options = one_host();
  options.owner_context.transports = {"posix", "self"};
  options.reader_context.transports = {"posix", "self"};
  return options;
}

class MessageLoan : public testing::Test {
 protected:
  void SetUp() override {
    if (!system_reads_processes()) GTEST_SKIP() << "process_vm_readv is forbidden here";
  }
  std::uint64_t reads() const { return both_.pair.owner_process.count(call::read_process); }
  /// Returns how many bytes went over the connection.
  std::uint64_t sent() { return both_.network().bytes(call::am_send); }
  /// Lets reading other processes fail, from the `nth` time on; or that time only.
  void forbid(unsigned nth) {
    both_.pair.owner_process.faults().fail(call::read_process, UCS_ERR_UNSUPPORTED, nth);
  }

  simulated_messages both_{one_host()};
};

TEST_F(MessageLoan, IsReadWhereItLies) {
  for (const std::size_t length : {std::size_t{300'000}, std::size_t{1} << 20U, sent_size + 1}) {
    SCOPED_TRACE(length);
    const std::vector<std::byte> from = pattern(length, length);
    const std::uint64_t before = sent();
    request send = both_.sender.start_send(7, from);
    std::vector<std::byte> into = blank(length);
    request receive = both_.receiver().start_receive(7, into);
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_FALSE(both_.outcome(send));
    EXPECT_EQ(receive.received().length, length);
    EXPECT_TRUE(holds_pattern(into, length));
    EXPECT_LT(sent() - before, 2048U) << "nothing but what announces it";
  }
  EXPECT_GE(reads(), 1U + 1 + 1 + 6);
}

TEST_F(MessageLoan, WaitsForItsReceiver) {
  const std::vector<std::byte> from = pattern(sent_size);
  request send = both_.sender.start_send(7, from);
  both_.settle();
  EXPECT_FALSE(send.done());
  EXPECT_EQ(reads(), 0U);
  message taken = both_.take(7);
  EXPECT_EQ(taken.length(), sent_size);
  EXPECT_TRUE(taken.data().empty()) << "it is not here, and neither is what is said of it";
  std::vector<std::byte> into = blank(sent_size);
  taken.receive(into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(both_.outcome(send));
}

TEST_F(MessageLoan, FillsTheRunsOfAScatteringReceive) {
  const std::vector<std::byte> from = pattern(sent_size);
  std::vector<std::byte> into = blank(sent_size);
  std::vector<std::span<std::byte>> runs;
  for (std::size_t at = 0, length = 1; at < sent_size; at += length, length = length * 3 + 1) {
    length = std::min(length, sent_size - at);
    runs.push_back(std::span(into).subspan(at, length));
  }
  for (std::size_t i = 0; i < 40; ++i) runs.insert(runs.begin(), std::span<std::byte>());
  request receive = both_.receiver().start_receive(7, std::span<const std::span<std::byte>>(runs));
  both_.sender.send(7, from);
  EXPECT_FALSE(both_.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_GT(reads(), 0U);
}

TEST_F(MessageLoan, OfSeveralRunsIsSentInPieces) {
  const std::vector<std::byte> from = pattern(sent_size);
  const std::array<std::span<const std::byte>, 2> runs{std::span(from).first(sent_size / 2),
                                                       std::span(from).last(sent_size / 2)};
  std::vector<std::byte> into = blank(sent_size);
  request receive = both_.receiver().start_receive(7, into);
  request send = both_.sender.start_send(7, std::span<const std::span<const std::byte>>(runs));
  EXPECT_FALSE(both_.outcome(receive));
  EXPECT_FALSE(both_.outcome(send));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(reads(), 0U);
}

TEST_F(MessageLoan, ActiveMessagesHaveTheirHeadersOnly) {
  std::vector<std::byte> header;
  buffer into;
  request receive;
  both_.receiver().on_message(3, [&](message active) {
    header.assign(active.header().begin(), active.header().end());
    into = buffer(active.length());
    receive = active.start_receive(into.bytes());
  });
  for (const std::size_t length : {0U, 88U, 89U, 1000U}) {
    SCOPED_TRACE(length);
    const std::vector<std::byte> from = pattern(sent_size, length);
    request send = both_.sender.start_send(active_message{3, pattern(length, 1)}, from);
    EXPECT_FALSE(both_.outcome(send));
    EXPECT_EQ(header, pattern(length, 1));
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_TRUE(holds_pattern(into.bytes(), length));
  }
  EXPECT_GT(reads(), 0U);
}

TEST_F(MessageLoan, GoesInPiecesWhereTheSystemForbidsTheReading) {
  forbid(0);
  std::size_t longest = 0;
  both_.network().watch([&](const sighting& seen) {
    if (seen.kind == call::am_send) longest = std::max(longest, seen.header.size() + seen.size);
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::vector<std::byte> from = pattern(sent_size, i);
    std::vector<std::byte> into = blank(sent_size);
    request receive = both_.receiver().start_receive(7, into);
    both_.sender.send(7, from);
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_TRUE(holds_pattern(into, i));
  }
  both_.network().watch({});
  EXPECT_EQ(reads(), 1U) << "it is tried once";
  EXPECT_LE(longest, one_host().link.max_am_header) << "each is an element of UCX's";
}

TEST_F(MessageLoan, GoesInPiecesWhereAReadFailsInTheMiddle) {
  for (unsigned nth = 2; nth < 6; ++nth) {
    SCOPED_TRACE(nth);
    const std::vector<std::byte> from = pattern(sent_size, nth);
    std::vector<std::byte> into = blank(sent_size);
    forbid(nth);
    request receive = both_.receiver().start_receive(7, into);
    both_.sender.send(7, from);
    EXPECT_FALSE(both_.outcome(receive));
    EXPECT_TRUE(holds_pattern(into, nth));
  }
}

TEST_F(MessageLoan, MemoryIsTheSendersAgainOnceItGaveUp) {
  for (std::uint64_t begun = 0; begun < 8; ++begun) {
    SCOPED_TRACE(begun);
    auto from = std::make_unique<std::vector<std::byte>>(pattern(sent_size, begun));
    std::vector<std::byte> into = blank(sent_size);
    request receive = both_.receiver().start_receive(7, into);
    request send = both_.sender.start_send(7, *from);
    const std::uint64_t before = reads();
    ASSERT_TRUE(
        both_.network().run_until([&] { return receive.done() || reads() - before >= begun; }));
    send.cancel();
    ASSERT_TRUE(send.done()) << "UCX has nothing of it, and the receiver notices";
    std::fill(from->begin(), from->end(), std::byte{0xee});
    from.reset();
    const std::error_code came = both_.outcome(receive);
    EXPECT_TRUE(!came || came == errc::message_withdrawn) << came;
    if (!came) {
      EXPECT_TRUE(holds_pattern(into, begun)) << "all of it, or an error";
    }
  }
  // And the next one is read as ever.
  const std::vector<std::byte> from = pattern(sent_size);
  std::vector<std::byte> into = blank(sent_size);
  request receive = both_.receiver().start_receive(8, into);
  const std::uint64_t before = reads();
  both_.sender.send(8, from);
  EXPECT_FALSE(both_.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_GT(reads(), before);
}

TEST_F(MessageLoan, ReceiverThatGivesUpReadsNoMore) {
  const std::vector<std::byte> from = pattern(sent_size);
  auto into = std::make_unique<std::vector<std::byte>>(sent_size);
  request receive = both_.receiver().start_receive(7, *into);
  request send = both_.sender.start_send(7, from);
  ASSERT_TRUE(both_.network().run_until([&] { return reads() >= 3; }));
  receive.cancel();
  ASSERT_TRUE(receive.done());
  into.reset();
  EXPECT_EQ(both_.outcome(send), errc::message_refused);
  EXPECT_EQ(receive.error(), errc::canceled);
}

TEST_F(MessageLoan, SeveralAreReadInTurn) {
  const std::vector<std::byte> from = pattern(sent_size);
  std::vector<std::vector<std::byte>> into(5, blank(sent_size));
  std::vector<request> receives;
  std::vector<request> sends;
  for (std::vector<std::byte>& each : into) {
    receives.push_back(both_.receiver().start_receive(7, each));
  }
  for (std::size_t i = 0; i < into.size(); ++i) sends.push_back(both_.sender.start_send(7, from));
  for (request& each : receives) EXPECT_FALSE(both_.outcome(each));
  for (request& each : sends) EXPECT_FALSE(both_.outcome(each));
  for (const std::vector<std::byte>& each : into) EXPECT_TRUE(holds_pattern(each));
}

TEST_F(MessageLoan, EndsWithItsConnection) {
  for (const bool sender_closes : {true, false}) {
    SCOPED_TRACE(sender_closes);
    simulated_messages both(one_host());
    const std::vector<std::byte> from = pattern(sent_size);
    std::vector<std::byte> into(sent_size);
    request receive = both.receiver().start_receive(7, into);
    request send = both.sender.start_send(7, from);
    fake_process& reading = both.pair.owner_process;
    ASSERT_TRUE(both.network().run_until([&] { return reading.count(call::read_process) >= 3; }));
    if (sender_closes) {
      both.sender.close(close_mode::abort);
      EXPECT_TRUE(send.done());
    } else {
      both.back().close(close_mode::abort);
      EXPECT_TRUE(receive.done());
    }
    EXPECT_TRUE(both.network().run_until([&] { return send.done() && receive.done(); }));
    EXPECT_TRUE(receive.error());
    EXPECT_TRUE(send.error());
  }
}

/// A peer that lends what it has not.
class LyingLender : public testing::Test {
 protected:
  explicit LyingLender(const simulated_pair_options& options = one_host())
      : pair_(options), peer_(pair_.network, "liar") {
    peer_.room = 16384;
    peer_.welcome_everybody();
    connection_ = std::make_unique<endpoint>(pair_.reader, peer_.its_address());
    connection_->wait_connected();
  }
  /// Announces a message, and lends it.
  void lend(std::uint64_t number, std::uint64_t length, const detail::cma_offer& offer) {
    parcel said;
    said.code = parcel_code::announce;
    said.session = peer_.guest_session;
    said.number = number;
    said.tag = 7;
    said.length = length;
    said.lends = true;
    std::vector<std::byte> header(parcel::size + detail::cma_offer::size);
    said.encode(std::span(header).first<parcel::size>());
    offer.encode(std::span(header).last<detail::cma_offer::size>());
    peer_.say_bytes(peer_.guest, header, {}, UCP_AM_SEND_FLAG_EAGER, 0xfe);
  }
  detail::cma_offer true_offer(const detail::cma_record& record,
                               std::span<const std::byte> bytes) const {
    return {.process = static_cast<std::uint64_t>(::getpid()),
            .address = reinterpret_cast<std::uintptr_t>(bytes.data()),
            .record = reinterpret_cast<std::uintptr_t>(&record),
            .token = 5};
  }

  simulated_pair pair_;
  frame_peer peer_;
  std::unique_ptr<endpoint> connection_;
  std::vector<std::byte> into_ = blank(300'000);
};

TEST_F(LyingLender, IsAskedForItsMessageInstead) {
  const std::vector<std::byte> bytes = pattern(into_.size());
  detail::cma_record record;
  std::mt19937_64 random(11);
  for (std::uint64_t number = 1; number <= 40; ++number) {
    SCOPED_TRACE(number);
    parcel said;
    said.session = peer_.guest_session;
    said.number = number;
    said.length = into_.size();
    record.begin(5, subject_of(said));
    detail::cma_offer offer = true_offer(record, bytes);
    switch (number % 4) {
      case 0:
        offer.process = 1 + random() % 40'000;
        break;
      case 1:
        offer.address = random();
        break;
      case 2:
        offer.record = number % 8 == 2 ? ~std::uint64_t{0} - 8 : random();
        break;
      case 3:
        offer.token = random() | 6U;
        break;
    }
    request receive = connection_->start_receive(7, into_);
    lend(number, into_.size(), offer);
    frame_peer::heard_parcel answer;
    ASSERT_TRUE(peer_.await(parcel_code::grant, answer));
    EXPECT_EQ(answer.said.number, number);
    EXPECT_NE(answer.said.tag, 0U) << "it was not taken";
    EXPECT_FALSE(receive.done());
    receive.cancel();
  }
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingLender, ChangesItsRecordMeanwhile) {
  if (!system_reads_processes()) GTEST_SKIP() << "process_vm_readv is forbidden here";
  const std::vector<std::byte> bytes = pattern(into_.size());
  detail::cma_record record;
  parcel said;
  said.session = peer_.guest_session;
  said.number = 1;
  said.length = into_.size() - 1;  // of another message than it announces
  record.begin(5, subject_of(said));
  request receive = connection_->start_receive(7, into_);
  lend(1, into_.size(), true_offer(record, bytes));
  frame_peer::heard_parcel answer;
  ASSERT_TRUE(peer_.await(parcel_code::grant, answer));
  EXPECT_NE(answer.said.tag, 0U);
  said.number = 2;
  said.length = into_.size();
  record.begin(5, subject_of(said));
  request next = connection_->start_receive(7, into_);
  lend(2, into_.size(), true_offer(record, bytes));
  ASSERT_TRUE(peer_.await(parcel_code::grant, answer));
  EXPECT_EQ(answer.said.number, 2U);
  EXPECT_EQ(answer.said.tag, 0U) << "it was read";
  EXPECT_TRUE(next.done());
  EXPECT_TRUE(holds_pattern(into_));
  receive.cancel();
}

TEST_F(LyingLender, OfMoreThanThereIsRoomForIsRefused) {
  const detail::cma_record record;
  request receive = connection_->start_receive(7, into_);
  lend(1, ~std::uint64_t{0}, true_offer(record, into_));
  frame_peer::heard_parcel answer;
  ASSERT_TRUE(peer_.await(parcel_code::refusal, answer));
  std::error_code ec;
  receive.wait(ec);
  EXPECT_EQ(ec, errc::message_truncated);
  EXPECT_EQ(pair_.reader_process.count(call::read_process), 0U);
}

TEST(MessageLoanElsewhere, NothingIsLentToWhoReadsNothing) {
  simulated_messages both(without_cma());
  const std::vector<std::byte> from = pattern(sent_size);
  std::vector<std::byte> into = blank(sent_size);
  request receive = both.receiver().start_receive(7, into);
  both.sender.send(7, from);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(both.pair.owner_process.count(call::read_process), 0U);
}

/// A side that was made without the system's copy between processes.
class LenderToOneWithoutCma : public LyingLender {
 protected:
  LenderToOneWithoutCma() : LyingLender(without_cma()) {}
};

TEST_F(LenderToOneWithoutCma, IsNotRead) {
  const std::vector<std::byte> bytes = pattern(into_.size());
  detail::cma_record record;
  parcel said;
  said.session = peer_.guest_session;
  said.number = 1;
  said.length = into_.size();
  record.begin(5, subject_of(said));
  const request receive = connection_->start_receive(7, into_);
  lend(1, into_.size(), true_offer(record, bytes));
  frame_peer::heard_parcel answer;
  ASSERT_TRUE(peer_.await(parcel_code::grant, answer));
  EXPECT_NE(answer.said.tag, 0U);
  EXPECT_EQ(pair_.reader_process.count(call::read_process), 0U);
}

TEST(MessageLoanElsewhere, NobodyShowsHisMemoryOverANetwork) {
  simulated_messages both;
  const std::vector<std::byte> from = pattern(sent_size);
  std::vector<std::byte> into = blank(sent_size);
  request receive = both.receiver().start_receive(7, into);
  both.sender.send(7, from);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_EQ(both.pair.owner_process.count(call::read_process), 0U);
  EXPECT_GE(both.network().bytes(call::am_send), sent_size);
}

}  // namespace
}  // namespace ucx::test
