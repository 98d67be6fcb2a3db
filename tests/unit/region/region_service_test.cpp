// What an owner answers to frames that no reader of ours would send.
#include "region/exposed/region_service.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/asked_owner.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucp/piece_sizes.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

class RegionService : public asked_owner {
 protected:
  using asked_owner::asked_owner;

  /// Says it, and returns the status of the answer.
  std::error_code outcome_of(const frame& asked, std::span<const std::byte> payload = {}) {
    peer_.say(owner_, asked, payload);
    const opcode answer = asked.code == opcode::read ? opcode::data : opcode::written;
    frame_peer::heard_frame heard;
    if (!peer_.await(answer, heard)) return std::make_error_code(std::errc::no_message);
    EXPECT_EQ(heard.said.request, asked.request);
    EXPECT_EQ(heard.said.session, session);
    return detail::status_error(heard.said.status);
  }
};

TEST_F(RegionService, AnswersAReadWithTheBytes) {
  peer_.say(owner_, question(opcode::read, 100, 50));
  frame_peer::heard_frame heard;
  ASSERT_TRUE(peer_.await(opcode::data, heard));
  EXPECT_EQ(heard.said.status, 0U);
  EXPECT_EQ(heard.said.offset, 0U);
  EXPECT_EQ(heard.said.length, 50U);
  ASSERT_EQ(heard.payload.size(), 50U);
  EXPECT_TRUE(holds_pattern(heard.payload, 0, 100));
}

TEST_F(RegionService, AnswersInShortPiecesToAPeerThatTellsNoSegment) {
  peer_.say(owner_, question(opcode::read, 0, 10'000));
  std::size_t arrived = 0;
  while (arrived < 10'000) {
    frame_peer::heard_frame heard;
    ASSERT_TRUE(peer_.await(opcode::data, heard));
    ASSERT_GT(heard.payload.size(), 0U);
    EXPECT_LE(heard.payload.size(), 4096U);
    arrived += heard.payload.size();
  }
  EXPECT_EQ(arrived, 10'000U);
}

TEST(PieceSizes, FitTheSegmentWithTheirHeaders) {
  for (std::size_t segment = 1024; segment < (std::size_t{9} << 20U); segment += 512) {
    const auto sizes = detail::piece_sizes::of_segment(segment);
    EXPECT_GT(sizes.answer, 0U) << segment;
    EXPECT_LE(sizes.answer + std::min<std::size_t>(segment / 2, 4096), segment);
    EXPECT_LE(sizes.write + std::min<std::size_t>(segment / 2, 4096), segment);
  }
  EXPECT_EQ(detail::piece_sizes::of_segment(0).write, 4096U);
}

TEST_F(RegionService, PutsAWriteInPlaceAndConfirmsIt) {
  const std::vector<std::byte> bytes = pattern(50, 1);
  EXPECT_FALSE(outcome_of(question(opcode::write, 100, 50), bytes));
  EXPECT_TRUE(holds_pattern(std::span(memory_).subspan(100, 50), 1));
  EXPECT_TRUE(holds_pattern(std::span(memory_).first(100)));
  EXPECT_TRUE(holds_pattern(std::span(memory_).subspan(150), 0, 150));
}

TEST_F(RegionService, OffsetsDoNotOverflow) {
  struct attempt {
    std::uint64_t offset, length;
  };
  for (const attempt each :
       {attempt{10000, 1}, attempt{9999, 2}, attempt{0, 10001}, attempt{1, largest},
        attempt{largest, 1}, attempt{largest, largest}, attempt{largest - 9, 20},
        attempt{largest - 9999, 10000}, attempt{largest / 2 + 1, largest / 2 + 1},
        attempt{std::uint64_t{1} << 63U, std::uint64_t{1} << 63U}, attempt{0, largest},
        attempt{5000, largest - 4999}}) {
    EXPECT_EQ(outcome_of(question(opcode::read, each.offset, each.length)), errc::out_of_range)
        << each.offset << " + " << each.length;
  }
  const std::vector<std::byte> bytes = pattern(20, 1);
  for (const std::uint64_t offset : {std::uint64_t{9981}, std::uint64_t{10000}, largest,
                                     largest - 19, largest - 10, std::uint64_t{1} << 63U}) {
    EXPECT_EQ(outcome_of(question(opcode::write, offset, 20), bytes), errc::out_of_range) << offset;
  }
  EXPECT_TRUE(holds_pattern(memory_));
}

TEST_F(RegionService, RefusesAReadOfNothing) {
  EXPECT_EQ(outcome_of(question(opcode::read, 0, 0)), errc::invalid_argument);
}

TEST_F(RegionService, RefusesAWriteWhosePayloadIsOfAnotherSize) {
  const std::vector<std::byte> bytes = pattern(20, 1);
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{19}, std::uint64_t{21}, largest}) {
    EXPECT_EQ(outcome_of(question(opcode::write, 0, length), bytes), errc::protocol_error)
        << length;
  }
  EXPECT_EQ(outcome_of(question(opcode::write, 0, 0)), errc::protocol_error);
  EXPECT_TRUE(holds_pattern(memory_));
}

TEST_F(RegionService, KnowsItsRegionsByIdIncarnationAndGeneration) {
  frame asked = question(opcode::read, 0, 1);
  ++asked.region;
  EXPECT_EQ(outcome_of(asked), errc::no_such_region);
  asked = question(opcode::read, 0, 1);
  asked.region = 0;
  EXPECT_EQ(outcome_of(asked), errc::no_such_region);
  asked.region = largest;
  EXPECT_EQ(outcome_of(asked), errc::no_such_region);
  asked = question(opcode::read, 0, 1);
  asked.incarnation = 0;
  EXPECT_EQ(outcome_of(asked), errc::stale_region);
  asked = question(opcode::read, 0, 1);
  asked.generation = 0;
  EXPECT_EQ(outcome_of(asked), errc::stale_region);
}

TEST_F(RegionService, RevokedRegionIsToldApartFromOneThatNeverWas) {
  const frame read = question(opcode::read, 0, 1);
  const frame write = question(opcode::write, 0, 1);
  exposed_.close();
  EXPECT_EQ(outcome_of(read), errc::revoked);
  const std::vector<std::byte> byte(1);
  EXPECT_EQ(outcome_of(write, byte), errc::revoked);
  EXPECT_TRUE(holds_pattern(memory_));
}

TEST_F(RegionService, ForgedRequestsAreAnsweredToTheirSession) {
  // The id of a request is the asker's affair: any value is echoed.
  for (const std::uint64_t id : {std::uint64_t{0}, largest}) {
    frame asked = question(opcode::read, 0, 1);
    asked.request = id;
    EXPECT_FALSE(outcome_of(asked));
  }
}

TEST_F(RegionService, FramesOfAnUnknownSessionAreDropped) {
  frame asked = question(opcode::read, 0, 10);
  for (const std::uint64_t unknown : {std::uint64_t{0}, session + 1, largest}) {
    asked.session = unknown;
    peer_.say(owner_, asked);
  }
  pair_.network.advance(50ms);
  EXPECT_TRUE(peer_.heard.empty());
}

TEST_F(RegionService, RefusesMoreReadsThanItSays) {
  // UCX lets go of no answer for a while, so none of them ends.
  pair_.owner_process.faults().delay(call::am_send, 500ms, 0);
  std::map<std::uint64_t, std::error_code> answered;
  const std::uint64_t first = last_request_ + 1;
  constexpr std::uint64_t asked = detail::region_service::most_reads + 50;
  for (std::uint64_t i = 0; i < asked; ++i) peer_.say(owner_, question(opcode::read, 0, 1));
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < asked; ++i) {
    frame_peer::heard_frame heard;
    ASSERT_TRUE(peer_.await(opcode::data, heard)) << i;
    const std::error_code status = detail::status_error(heard.said.status);
    answered[heard.said.request] = status;
    if (status == errc::busy) ++refused;
  }
  EXPECT_EQ(refused, 50U);
  for (std::uint64_t i = 0; i < asked; ++i) {
    const std::error_code expected =
        i < detail::region_service::most_reads ? std::error_code() : errc::busy;
    EXPECT_EQ(answered[first + i], expected) << "question " << i;
  }
  pair_.network.advance(1s);
  EXPECT_FALSE(outcome_of(question(opcode::read, 0, 1)));
}

class ReadableRegionService : public RegionService {
 protected:
  ReadableRegionService() : RegionService(access::read) {}
};

TEST_F(ReadableRegionService, RefusesWrites) {
  const std::vector<std::byte> bytes = pattern(20, 1);
  EXPECT_EQ(outcome_of(question(opcode::write, 0, 20), bytes), errc::permission_denied);
  EXPECT_FALSE(outcome_of(question(opcode::read, 0, 20)));
  EXPECT_TRUE(holds_pattern(memory_));
}

class WritableRegionService : public RegionService {
 protected:
  WritableRegionService() : RegionService(access::write) {}
};

TEST_F(WritableRegionService, RefusesReads) {
  EXPECT_EQ(outcome_of(question(opcode::read, 0, 20)), errc::permission_denied);
  // Rights come before bounds: who may not read learns nothing of the size.
  EXPECT_EQ(outcome_of(question(opcode::read, largest, 20)), errc::permission_denied);
  const std::vector<std::byte> bytes = pattern(20, 1);
  EXPECT_FALSE(outcome_of(question(opcode::write, 0, 20), bytes));
}

class LargeRegionService : public RegionService {
 protected:
  LargeRegionService() : RegionService(access::read_write, std::size_t{8} << 20U) {}
};

TEST_F(LargeRegionService, WithdrawingWaitsForAnAnswerThatIsOnItsWay) {
  peer_.say(owner_, question(opcode::read, 0, memory_.size()));
  peer_.process.stop();
  pair_.network.advance(10ms);  // the answer fills the socket and waits
  bool resumed = false;
  const auto begin = pair_.network.now();
  pair_.reader_process.on_pump([&] {
    if (!resumed && pair_.network.now() - begin > 200ms) {
      resumed = true;
      peer_.process.resume();
    }
  });
  exposed_.close();
  EXPECT_TRUE(resumed);
  // The owner may use the memory for something else now.
  fill_pattern(memory_, 99);
  std::size_t received = 0;
  peer_.wait([&] {
    received = 0;
    for (const auto& each : peer_.heard) received += each.payload.size();
    return received == memory_.size();
  });
  EXPECT_EQ(received, memory_.size());
  for (const auto& each : peer_.heard) {
    EXPECT_TRUE(holds_pattern(each.payload, 0, each.said.offset));
  }
}

TEST_F(LargeRegionService, WithdrawingDropsAPeerThatTakesNothing) {
  peer_.say(owner_, question(opcode::read, 0, memory_.size()));
  peer_.process.stop();
  pair_.network.advance(10ms);
  const auto begin = pair_.network.now();
  exposed_.close();
  const auto took = pair_.network.now() - begin;
  EXPECT_GE(took, 5s);
  EXPECT_LT(took, 6s);
  fill_pattern(memory_, 99);
  peer_.process.resume();
  EXPECT_TRUE(peer_.wait([&] { return !peer_.failures.empty(); }));
}

TEST_F(LargeRegionService, LetsGoOfAPeerThatVanishesInAnAnswer) {
  peer_.say(owner_, question(opcode::read, 0, memory_.size()));
  peer_.process.stop();
  pair_.network.advance(10ms);
  peer_.process.kill();
  pair_.network.advance(100ms);
  const auto begin = pair_.network.now();
  exposed_.close();
  EXPECT_LT(pair_.network.now() - begin, 100ms);
}

TEST_F(LargeRegionService, LastPieceMayEndAfterTheConnection) {
  pair_.owner_process.faults().delay(call::am_send, 20ms, 0);
  peer_.say(owner_, question(opcode::read, 0, memory_.size()));
  pair_.network.advance(10ms);
  peer_.process.kill();
  pair_.network.advance(1s);
  const auto begin = pair_.network.now();
  exposed_.close();
  EXPECT_LT(pair_.network.now() - begin, 100ms);
}

TEST_F(RegionService, DropsAPeerThatAsksAndTakesNoAnswers) {
  pair_.owner_process.faults().delay(call::am_send, 500ms, 0);
  frame ping;
  ping.code = opcode::ping;
  ping.session = session;
  for (int i = 0; i < 5000; ++i) peer_.say(owner_, ping);
  EXPECT_TRUE(peer_.wait([&] { return !peer_.failures.empty(); }));
  EXPECT_LE(pair_.owner_process.count(call::am_send), 4096U + 10U);
}

TEST_F(RegionService, DropsAPeerWhoseControlMessageIsTooLong) {
  frame control;
  control.code = opcode::control;
  control.session = session;
  control.length = (std::size_t{64} << 10U) + 1;
  peer_.say(owner_, control, std::vector<std::byte>(control.length));
  EXPECT_TRUE(peer_.wait([&] { return !peer_.failures.empty(); }));
}

}  // namespace
}  // namespace ucx::test
