// Peers whose messages lie, make no sense, or come in another order than they were sent in.
#include <gtest/gtest.h>

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
#include "support/bytes/untouched.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/parcel.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::brief_parcel;
using detail::message_kind;
using detail::parcel;
using detail::parcel_code;

/// A side of ours, connected to a peer that a test speaks for.
class LyingMessenger : public testing::Test {
 protected:
  LyingMessenger() : peer_(pair_.network, "liar") {
    peer_.room = 16384;
    peer_.welcome_everybody();
    connection_ = std::make_unique<endpoint>(pair_.reader, peer_.its_address());
    connection_->wait_connected();
  }

  parcel of(parcel_code code, std::uint64_t number = 0) const {
    parcel made;
    made.code = code;
    made.session = peer_.guest_session;
    made.number = number;
    return made;
  }
  /// Sends a whole message.
  void send(std::uint64_t number, std::uint64_t tag, std::size_t size,
            message_kind kind = message_kind::tagged) {
    parcel said = of(parcel_code::message, number);
    said.kind = kind;
    said.tag = tag;
    said.length = size;
    peer_.say(peer_.guest, said, {}, pattern(size, number));
  }
  /// The same, in a brief parcel.
  void send_briefly(std::uint64_t number, std::uint64_t tag, std::size_t size,
                    message_kind kind = message_kind::tagged, std::uint16_t credit = 0) {
    parcel said = of(parcel_code::message, number);
    said.kind = kind;
    said.tag = tag;
    said.credit = credit;
    peer_.say_bytes(peer_.guest, briefly(said), pattern(size, number), UCP_AM_SEND_FLAG_EAGER,
                    0xfe);
  }
  /// Returns the header of a brief parcel that says the same.
  static std::vector<std::byte> briefly(const parcel& said) {
    brief_parcel same;
    same.kind = said.kind;
    same.credit = static_cast<std::uint8_t>(said.credit);
    same.number = static_cast<std::uint32_t>(said.number);
    same.session = said.session;
    same.tag = said.tag;
    std::vector<std::byte> wire(brief_parcel::longest);
    wire.resize(same.encode(std::span(wire).first<brief_parcel::longest>()));
    return wire;
  }
  void announce(std::uint64_t number, std::uint64_t tag, std::uint64_t size) {
    parcel said = of(parcel_code::announce, number);
    said.tag = tag;
    said.length = size;
    peer_.say(peer_.guest, said);
  }
  void settle() { pair_.network.advance(10ms); }
  void expect_blamed() {
    settle();
    EXPECT_EQ(connection_->status(), errc::protocol_error);
  }
  std::error_code outcome(request& waited) {
    std::error_code ec;
    waited.wait(ec);
    return ec;
  }

  simulated_pair pair_;
  frame_peer peer_;
  std::unique_ptr<endpoint> connection_;
  std::vector<std::byte> into_ = std::vector<std::byte>(1000, untouched);
};

TEST_F(LyingMessenger, SaysHowMuchRoomThereIs) {
  EXPECT_EQ(peer_.granted, (4U << 20U) / detail::window_unit);
}

TEST_F(LyingMessenger, MessageThatOvertakesItsWelcomeIsAnswered) {
  frame_peer early(pair_.network, "early");
  const endpoint connection(pair_.reader, early.its_address());
  request from_anybody = pair_.reader.start_receive(7, into_);
  frame_peer::heard_frame hello;
  ASSERT_TRUE(early.await(detail::opcode::hello, hello));
  parcel said = of(parcel_code::announce, 1);
  said.session = hello.said.session;
  said.tag = 7;
  said.length = 100;
  early.say(early.reach(hello.address()), said);
  frame_peer::heard_parcel grant;
  ASSERT_TRUE(early.await(parcel_code::grant, grant));
  EXPECT_EQ(grant.said.number, 1U);
  EXPECT_FALSE(from_anybody.done());
}

TEST_F(LyingMessenger, WhoWasRefusedIsNotListenedTo) {
  worker strict(pair_.owner_context, {.terms = {.require_rdma = true}});
  pair_.owner_process.on_pump([&] { strict.progress(); });
  frame_peer refused(pair_.network, "refused");
  refused.room = 100;
  const ucp_ep_h to = refused.reach(strict.address());
  constexpr std::uint64_t session = 77;
  ASSERT_FALSE(refused.open_session(to, session));
  EXPECT_EQ(refused.count(detail::opcode::farewell), 1U) << "it was told";
  parcel said = of(parcel_code::message, 1);
  said.session = session;
  said.tag = 7;
  said.length = 10;
  refused.say(to, said, {}, pattern(10));
  settle();
  EXPECT_FALSE(strict.probe(tag_match::any()));
  pair_.owner_process.on_pump([this] { pair_.owner.progress(); });
}

TEST_F(LyingMessenger, RefusesOnlyWhatWasSent) {
  int told = 0;
  message_handlers handlers;
  handlers.on_refused = [&](message_info) { ++told; };
  connection_->set_message_handlers(std::move(handlers));
  connection_->send(active_message{3}, pattern(10));
  for (const std::uint64_t number : {1U, 2U, 1000U}) {
    parcel refusal = of(parcel_code::refusal, number);
    refusal.kind = message_kind::active;
    refusal.tag = 3;
    refusal.status = static_cast<std::uint16_t>(
        detail::error_status(make_error_code(number == 1 ? errc::no_such_handler : errc::busy)));
    peer_.say(peer_.guest, refusal);
    refusal.status =
        static_cast<std::uint16_t>(detail::error_status(make_error_code(errc::no_such_handler)));
    if (number > 1) peer_.say(peer_.guest, refusal);
  }
  settle();
  EXPECT_EQ(told, 1);
}

TEST_F(LyingMessenger, OrderIsThatOfTheNumbersWhateverComesFirst) {
  std::vector<std::uint64_t> numbers(50);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i + 1;
  std::mt19937 random(5);
  std::shuffle(numbers.begin(), numbers.end(), random);
  for (const std::uint64_t number : numbers) send(number, number, 10);
  for (std::uint64_t number = 1; number <= 50; ++number) {
    request receive = connection_->start_receive(tag_match::any(), into_);
    EXPECT_FALSE(outcome(receive));
    EXPECT_EQ(receive.received().tag, number);
    EXPECT_TRUE(holds_pattern(std::span(into_).first(10), number));
  }
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingMessenger, WhatComesEarlyIsNotSeenBeforeItsTurn) {
  send(2, 7, 10);
  settle();
  EXPECT_FALSE(pair_.reader.probe(tag_match::any()));
  send(1, 6, 10);
  settle();
  EXPECT_EQ(pair_.reader.probe(tag_match::any())->tag, 6U);
  EXPECT_EQ(pair_.reader.probe(7)->tag, 7U);
}

TEST_F(LyingMessenger, StreamIsPutInOrder) {
  for (const std::uint64_t number : {3U, 1U, 2U}) send(number, 0, 10, message_kind::stream);
  std::array<std::byte, 30> into{};
  connection_->stream_receive(into, stream_amount::all);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(holds_pattern(std::span(into).subspan(i * 10, 10), i + 1));
  }
}

TEST_F(LyingMessenger, BriefMessagesAreInOneOrderWithAllOthers) {
  send_briefly(3, 3, 10);
  send(2, 2, 10);
  send_briefly(1, std::uint64_t{1} << 40U, 10);
  for (const std::uint64_t tag : {std::uint64_t{1} << 40U, std::uint64_t{2}, std::uint64_t{3}}) {
    request receive = connection_->start_receive(tag_match::any(), into_);
    EXPECT_FALSE(outcome(receive));
    EXPECT_EQ(receive.received().tag, tag);
    EXPECT_EQ(receive.received().length, 10U);
  }
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingMessenger, BriefNumberThatWasUsedIsALie) {
  send_briefly(1, 7, 10);
  send_briefly(1, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, BriefNumberBeforeTheFirstIsALie) {
  send_briefly(0, 7, 10);
  expect_blamed();
  EXPECT_FALSE(pair_.reader.probe(tag_match::any()));
}

TEST_F(LyingMessenger, BriefNumberFarAheadIsALie) {
  send_briefly(0x80000000U, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, BriefNumberFarBehindIsALie) {
  send_briefly(0x80000002U, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, BriefCreditThatWasNotTakenIsALie) {
  send_briefly(1, 7, 10, message_kind::tagged, 1);
  expect_blamed();
}

TEST_F(LyingMessenger, EmptyBriefStreamIsALie) {
  send_briefly(1, 0, 0, message_kind::stream);
  expect_blamed();
}

TEST_F(LyingMessenger, NumberThatWasUsedIsALie) {
  send(1, 7, 10);
  send(1, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, NumberThatIsHeldBackAlreadyIsALie) {
  send(5, 7, 10);
  send(5, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, NumberFarAheadIsALie) {
  send(1U << 20U, 7, 10);
  expect_blamed();
}

TEST_F(LyingMessenger, MoreThanThereIsRoomForIsALie) {
  for (std::uint64_t number = 1; number <= 5; ++number) send(number, 7, 1000000);
  expect_blamed();
  // What came while there was room can be had.
  EXPECT_EQ(pair_.reader.probe(7)->length, 1000000U);
}

TEST_F(LyingMessenger, MoreRoomThanWasTakenIsALie) {
  parcel credit = of(parcel_code::credit);
  credit.credit = 1;
  peer_.say(peer_.guest, credit);
  expect_blamed();
}

TEST_F(LyingMessenger, AnnouncedStreamIsALie) {
  parcel said = of(parcel_code::announce, 1);
  said.kind = message_kind::stream;
  said.length = 10;
  peer_.say(peer_.guest, said);
  expect_blamed();
}

TEST_F(LyingMessenger, HugeMessageIsAskedForOnlyWhereItFits) {
  announce(1, 7, ~std::uint64_t{0});
  request receive = connection_->start_receive(7, into_);
  EXPECT_EQ(outcome(receive), errc::message_truncated);
  EXPECT_EQ(receive.received().length, ~std::uint64_t{0});
  frame_peer::heard_parcel refusal;
  ASSERT_TRUE(peer_.await(parcel_code::refusal, refusal));
  EXPECT_EQ(refusal.said.number, 1U);
  EXPECT_EQ(refusal.said.status, static_cast<int>(errc::message_truncated));
  announce(2, 7, ~std::uint64_t{0} - 5);
  buffer made;
  request makes = connection_->start_receive(7, {made, ~std::size_t{0}});
  EXPECT_EQ(outcome(makes), errc::no_memory);
}

/// A message of 100 bytes is on its way into the middle of `into_`.
class LyingPieces : public LyingMessenger {
 protected:
  LyingPieces() {
    announce(1, 7, 100);
    receive_ = connection_->start_receive(7, std::span(into_).subspan(50, 100), {.timeout = 300ms});
    frame_peer::heard_parcel grant;
    EXPECT_TRUE(peer_.await(parcel_code::grant, grant));
    EXPECT_EQ(grant.said.number, 1U);
    EXPECT_EQ(grant.said.length, 100U);
    id_ = grant.said.tag;
    EXPECT_NE(id_, 0U);
  }
  void piece(std::uint64_t offset, std::size_t size, std::uint64_t id) {
    parcel said = of(parcel_code::piece, id);
    said.length = offset;
    peer_.say(peer_.guest, said, {}, pattern(size));
  }
  std::error_code end() {
    const std::error_code ec = outcome(receive_);
    EXPECT_TRUE(all_bytes_are(std::span(into_).first(50), untouched));
    EXPECT_TRUE(all_bytes_are(std::span(into_).subspan(150), untouched));
    return ec;
  }

  request receive_;
  std::uint64_t id_ = 0;
};

TEST_F(LyingPieces, TruthIsBelievedInAnyOrder) {
  piece(60, 40, id_);
  piece(0, 60, id_);
  EXPECT_FALSE(end());
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(50, 60)));
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(110, 40)));
}

TEST_F(LyingPieces, MoreThanWasAnnouncedIsALie) {
  piece(0, 101, id_);
  EXPECT_EQ(end(), errc::protocol_error);
}

TEST_F(LyingPieces, BytesForElsewhereAreALie) {
  piece(91, 10, id_);
  EXPECT_EQ(end(), errc::protocol_error);
}

TEST_F(LyingPieces, BytesFarOutsideAreALie) {
  piece(~std::uint64_t{0} - 20, 10, id_);
  EXPECT_EQ(end(), errc::protocol_error);
}

TEST_F(LyingPieces, MoreInSumThanWasAnnouncedIsALie) {
  piece(0, 90, id_);
  piece(0, 90, id_);
  EXPECT_EQ(end(), errc::protocol_error);
}

TEST_F(LyingPieces, ForNobodyAreDropped) {
  piece(0, 100, id_ + 1);
  piece(0, 100, 0);
  piece(0, 100, ~std::uint64_t{0});
  EXPECT_EQ(end(), errc::timed_out);
  frame_peer::heard_parcel refusal;
  EXPECT_TRUE(peer_.await(parcel_code::refusal, refusal));
  piece(0, 100, id_);  // too late
  settle();
  EXPECT_TRUE(all_bytes_are(into_, untouched));
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingPieces, WithdrawalEndsTheReceive) {
  piece(0, 10, id_);
  parcel gone = of(parcel_code::withdrawal, 1);
  gone.status = static_cast<std::uint16_t>(errc::canceled);
  peer_.say(peer_.guest, gone);
  EXPECT_EQ(end(), errc::message_withdrawn);
}

TEST_F(LyingMessenger, GrantOfAnotherLengthIsALie) {
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = connection_->start_send(1, big);
  frame_peer::heard_parcel announced;
  ASSERT_TRUE(peer_.await(parcel_code::announce, announced));
  EXPECT_EQ(announced.said.length, big.size());
  parcel grant = of(parcel_code::grant, announced.said.number);
  grant.tag = 1;
  grant.length = big.size() + 1;
  peer_.say(peer_.guest, grant);
  EXPECT_EQ(outcome(send), errc::protocol_error);
}

TEST_F(LyingMessenger, SecondGrantIsALie) {
  const std::vector<std::byte> big = pattern(16U << 20U);
  request send = connection_->start_send(1, big);
  frame_peer::heard_parcel announced;
  ASSERT_TRUE(peer_.await(parcel_code::announce, announced));
  parcel grant = of(parcel_code::grant, announced.said.number);
  grant.tag = 1;
  grant.length = big.size();
  peer_.say(peer_.guest, grant);
  peer_.say(peer_.guest, grant);
  EXPECT_EQ(outcome(send), errc::protocol_error);
}

TEST_F(LyingMessenger, AnswersToNothingAreDropped) {
  const parcel_code answers[]{parcel_code::grant, parcel_code::refusal, parcel_code::withdrawal};
  for (const parcel_code code : answers) peer_.say(peer_.guest, of(code, 77));
  settle();
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingMessenger, UnknownRefusalIsAProtocolError) {
  const std::vector<std::byte> big = pattern(1U << 20U);
  request send = connection_->start_send(1, big);
  frame_peer::heard_parcel announced;
  ASSERT_TRUE(peer_.await(parcel_code::announce, announced));
  parcel refusal = of(parcel_code::refusal, announced.said.number);
  refusal.status = 60000;
  peer_.say(peer_.guest, refusal);
  EXPECT_EQ(outcome(send), errc::protocol_error);
}

TEST_F(LyingMessenger, NonsenseNeverHarms) {
  std::mt19937_64 random(11);
  std::vector<request> receives;
  std::vector<std::vector<std::byte>> memory(8, std::vector<std::byte>(200));
  std::vector<request> sends;
  const std::vector<std::byte> big = pattern(300000);
  for (int round = 0; round < 60; ++round) {
    auto connection = std::make_unique<endpoint>(pair_.reader, peer_.its_address());
    connection->wait_connected();
    receives.clear();
    sends.clear();
    for (auto& each : memory) {
      receives.push_back(connection->start_receive({0, 1}, each, {.timeout = 20ms}));
    }
    for (int i = 0; i < 4; ++i) {
      sends.push_back(connection->start_send(1, big, {.timeout = 20ms}));
    }
    for (int i = 0; i < 30; ++i) {
      parcel said = of(static_cast<parcel_code>(1 + random() % 7), 1 + random() % 6);
      said.kind = static_cast<message_kind>(random() % 3);
      said.tag = random() % 5;
      said.length = random() % 300;
      const std::size_t payload = said.code == parcel_code::message ? said.length
                                  : said.code == parcel_code::piece ? 1 + random() % 100
                                                                    : 0;
      if (random() % 3 == 0) said.credit = static_cast<std::uint16_t>(random() % 3);
      std::vector<std::byte> wire(parcel::size);
      if (said.code == parcel_code::message && random() % 2 == 0) {
        wire = briefly(said);
      } else {
        said.encode(std::span(wire).first<parcel::size>());
      }
      if (random() % 4 == 0) {
        wire[random() % wire.size()] ^= static_cast<std::byte>(1U << (random() % 8));
      }
      if (random() % 16 == 0) wire.resize(random() % 80);
      peer_.say_bytes(peer_.guest, wire, pattern(payload), UCP_AM_SEND_FLAG_EAGER, 0xfe);
    }
    settle();
    for (request& each : receives) outcome(each);
    std::error_code ignored;
    connection->close(close_mode::abort, ignored);
    for (request& each : sends) EXPECT_TRUE(each.done());
    while (pair_.reader.take(tag_match::any())) {
    }
  }
}

}  // namespace
}  // namespace ucx::test
