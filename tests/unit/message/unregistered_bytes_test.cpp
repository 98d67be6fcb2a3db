// Bytes that RDMA hardware can not register, because the process may not lock or not write their
// pages: they are sent in pieces that UCX copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t unregistered_size = 100'000;
constexpr std::size_t unregistered_long = 600'000;
constexpr std::size_t copied_piece = 1024;

class UnregisteredBytes : public testing::Test {
 protected:
  simulated_pair_options options() {
    simulated_pair_options made;
    made.link.emulated_rma = false;
    made.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
    made.reader_context.log.level = log_level::warning;
    made.reader_context.log.sink = [this](log_level, std::string_view line) {
      warnings.emplace_back(line);
    };
    return made;
  }
  /// UCX refuses the sender's next message, and the `nth` at first.
  void refuse(ucs_status_t status = UCS_ERR_IO_ERROR, unsigned nth = 1) {
    both.pair.reader_process.faults().fail(call::am_send, status, nth);
  }
  /// Returns how many messages of UCX's the sender has sent.
  std::uint64_t sent() const { return both.pair.reader_process.count(call::am_send); }

  std::vector<std::string> warnings;
  simulated_messages both{options()};
};

TEST_F(UnregisteredBytes, OfWholeMessagesGoInPieces) {
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    for (const send_until until : {send_until::reusable, send_until::matched}) {
      for (const bool is_awaited : {true, false}) {
        const std::vector<std::byte> from = pattern(unregistered_size);
        std::vector<std::byte> into = blank(unregistered_size);
        request receive;
        if (is_awaited) receive = both.receiver().start_receive(7, into);
        both.settle();
        const std::uint64_t before = sent();
        refuse(status);
        request send = both.sender.start_send(7, from, {.until = until});
        both.settle();
        if (!is_awaited) receive = both.receiver().start_receive(7, into);
        EXPECT_FALSE(both.outcome(receive));
        EXPECT_FALSE(both.outcome(send));
        EXPECT_TRUE(holds_pattern(into));
        EXPECT_GE(sent() - before, unregistered_size / copied_piece);
        EXPECT_LT(sent() - before, unregistered_size / copied_piece + 10);
      }
    }
  }
  ASSERT_EQ(warnings.size(), 1U) << "once for a connection";
  EXPECT_TRUE(mentions(warnings[0], "what is sent goes in small pieces")) << warnings[0];
}

TEST_F(UnregisteredBytes, OfAnnouncedMessagesGoInSmallerPieces) {
  const std::vector<std::byte> from = pattern(unregistered_long);
  const std::array<std::span<const std::byte>, 2> halves{
      std::span(from).first(unregistered_long / 2), std::span(from).last(unregistered_long / 2)};
  for (const bool in_runs : {false, true}) {
    SCOPED_TRACE(in_runs);
    std::vector<std::byte> into = blank(unregistered_long);
    request receive = both.receiver().start_receive(7, into);
    both.settle();
    const std::uint64_t before = sent();
    refuse(UCS_ERR_IO_ERROR, 2);  // behind the announcement
    request send =
        in_runs ? both.sender.start_send(7, std::span<const std::span<const std::byte>>(halves))
                : both.sender.start_send(7, from);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(into));
    EXPECT_GE(sent() - before, unregistered_long / 2 / copied_piece);
  }
}

TEST_F(UnregisteredBytes, OfAStreamKeepTheirOrderAndTheirRoom) {
  endpoint back = both.back();
  for (int round = 0; round < 40; ++round) {  // together more than the receiver's window
    SCOPED_TRACE(round);
    const std::vector<std::byte> from =
        pattern(unregistered_size, static_cast<std::uint64_t>(round));
    std::vector<std::byte> into = blank(unregistered_size);
    refuse();
    request send = both.sender.start_stream_send(from);
    request receive = back.start_stream_receive(into, stream_amount::all);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(holds_pattern(into, static_cast<std::uint64_t>(round)));
  }
}

TEST_F(UnregisteredBytes, LeaveLaterMessagesTheirPlaces) {
  const std::vector<std::byte> from = pattern(unregistered_size);
  std::vector<std::byte> first = blank(unregistered_size);
  std::vector<std::byte> second = blank(10);
  request receive_first = both.receiver().start_receive(tag_match::any(), first);
  request receive_second = both.receiver().start_receive(tag_match::any(), second);
  refuse();
  request send = both.sender.start_send(7, from);
  both.sender.send(8, std::span(from).first(10));
  EXPECT_FALSE(both.outcome(receive_first));
  EXPECT_FALSE(both.outcome(receive_second));
  EXPECT_FALSE(both.outcome(send));
  EXPECT_EQ(receive_first.received().tag, 7U);
  EXPECT_EQ(receive_second.received().tag, 8U);
}

TEST_F(UnregisteredBytes, AreWrittenInPieces) {
  for (const bool is_first : {true, false}) {
    std::vector<std::byte> memory(unregistered_long);
    const memory_region exposed(both.pair.owner_context, std::span(memory), access::write);
    remote_region region(both.sender, exposed.descriptor(),
                         {.transfer_method = transfer_method::message});
    const std::vector<std::byte> from = pattern(unregistered_long);
    const std::uint64_t before = sent();
    refuse(UCS_ERR_IO_ERROR, is_first ? 1 : 2);
    region.write_at(0, std::span(from).first(unregistered_long / 2));
    region.write_at(unregistered_long / 2, std::span(from).last(unregistered_long / 2));
    region.flush();
    EXPECT_TRUE(holds_pattern(memory));
    EXPECT_GE(sent() - before, unregistered_long / 2 / copied_piece);
    EXPECT_LT(sent() - before, unregistered_long / 2 / copied_piece + 10)
        << "the other one as ever";
  }
}

TEST_F(UnregisteredBytes, LoseTheConnectionWhereSmallPiecesFailToo) {
  const std::vector<std::byte> from = pattern(unregistered_size);
  std::vector<std::byte> into = blank(unregistered_size);
  request receive = both.receiver().start_receive(7, into);
  refuse(UCS_ERR_IO_ERROR, 1);
  refuse(UCS_ERR_IO_ERROR, 5);
  request send = both.sender.start_send(7, from);
  EXPECT_EQ(both.outcome(send), errc::connection_reset);
}

TEST_F(UnregisteredBytes, AreTheOnlyCauseOfSmallPieces) {
  const std::vector<std::byte> from = pattern(unregistered_size);
  refuse(UCS_ERR_ENDPOINT_TIMEOUT);
  request send = both.sender.start_send(7, from);
  EXPECT_EQ(both.outcome(send), errc::connection_reset);
}

TEST(UnregisteredBytesWithoutHardware, AreNoCauseOfAnError) {
  simulated_messages both;
  const std::vector<std::byte> from = pattern(unregistered_size);
  both.pair.reader_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR);
  request send = both.sender.start_send(7, from);
  EXPECT_EQ(both.outcome(send), errc::connection_reset) << "nothing is registered there";
}

}  // namespace
}  // namespace ucx::test
