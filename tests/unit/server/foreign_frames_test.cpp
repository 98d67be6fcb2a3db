// A client of a server over sockets sends each kind of frame about what belongs to another client:
// it learns nothing, and changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "region/exposed/atomic_execution.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "unit/carrier/wire_peer.hpp"
#include "wire/frame.hpp"
#include "wire/range_list.hpp"

namespace ucx::test {
namespace {

using detail::frame;
using detail::opcode;

constexpr std::uint64_t victims_session = 11;
constexpr std::uint64_t strangers_session = 12;

std::vector<std::byte> ranges_of_eight(std::size_t more) {
  std::vector<std::byte> made;
  detail::range_list::begin(1, made);
  detail::range_list::append({0, 8}, made);
  made.resize(made.size() + more, std::byte{0x77});
  return made;
}

std::vector<std::byte> bytes_of_atomic() {
  const auto made =
      detail::encode({.operation = atomic_operation::store, .width = 8, .operand = 7}, true);
  return {made.begin(), made.end()};
}

/// The payload of a frame, and whether the server answers it.
struct foreign_frame {
  std::vector<std::byte> payload = {};
  bool is_answered = false;
};

/// Returns how a frame of this kind is said; nothing of a kind that is not known here. A new kind
/// needs its row: without it this does not compile, and `HasARowForEachKind` fails.
std::optional<foreign_frame> said_as(opcode code) {
  switch (code) {
    case opcode::read:
      return foreign_frame{{}, true};
    case opcode::write:
      return foreign_frame{std::vector<std::byte>(8, std::byte{0x77}), true};
    case opcode::atomic:
      return foreign_frame{bytes_of_atomic(), true};
    case opcode::read_batch:
      return foreign_frame{ranges_of_eight(0), true};
    case opcode::write_batch:
      return foreign_frame{ranges_of_eight(8), true};
    case opcode::notify:
      return foreign_frame{{}, true};
    case opcode::data:
      return foreign_frame{std::vector<std::byte>(8, std::byte{0x77}), false};
    case opcode::written:
    case opcode::performed:
    case opcode::notified:
    case opcode::pass_file:
    case opcode::hello:
    case opcode::welcome:
    case opcode::ping:
    case opcode::pong:
    case opcode::bye:
    case opcode::farewell:
    case opcode::control:
      return foreign_frame{};
  }
  return std::nullopt;
}

/// Returns each kind that the decoder of this library reads.
std::vector<opcode> all_opcodes() {
  std::vector<opcode> all;
  for (unsigned value = 0; value < 256; ++value) {
    frame each;
    each.code = static_cast<opcode>(value);
    frame::bytes wire = {};
    each.encode(wire);
    if (const auto read = detail::decode_frame(wire)) all.push_back(read->code);
  }
  return all;
}

TEST(ForeignFrame, HasARowForEachKind) {
  const std::vector<opcode> all = all_opcodes();
  EXPECT_EQ(all.size(), 18U);
  for (const opcode each : all) EXPECT_TRUE(said_as(each)) << static_cast<int>(each);
}

/// A client that has a name open, and others that have another one.
class ForeignFrames : public testing::TestWithParam<std::string> {
 protected:
  wire_peer connected(std::uint64_t session) {
    wire_peer made(url(serving_.url()), by_);
    made.greet(session);
    made.greet_server();
    return made;
  }
  /// Returns what comes before the answer to a ping: frames of the session, but no signs of life.
  static std::vector<std::pair<frame::bytes, std::vector<std::byte>>> heard_by(wire_peer& peer) {
    std::vector<std::pair<frame::bytes, std::vector<std::byte>>> all;
    peer.say(peer.of(opcode::ping));
    for (auto heard = peer.next(); heard && heard->said.code != opcode::pong; heard = peer.next()) {
      if (heard->said.code == opcode::ping) continue;
      frame::bytes wire = {};
      heard->said.encode(wire);
      all.emplace_back(wire, std::move(heard->payload));
    }
    return all;
  }
  /// Returns what a client of another name hears of a frame about this region.
  auto heard_of(opcode code, const foreign_frame& said, const remote_descriptor& about) {
    wire_peer stranger = connected(strangers_session);
    EXPECT_TRUE(stranger.open("own", access::read_write));
    stranger.say(stranger.about(about, code), said.payload);
    return heard_by(stranger);
  }

  const temporary_directory secrets_;
  const url_scheme by_{GetParam(), secrets_ / ""};
  std::vector<std::byte> memory_ = pattern(4096);
  std::vector<std::byte> other_ = pattern(4096, 1);
  server serving_{by_.server()};
  const publication shown_ =
      serving_.publish("secret", std::span<std::byte>(memory_), access::read_write);
  const publication own_ =
      serving_.publish("own", std::span<std::byte>(other_), access::read_write);
  wire_peer victim_ = connected(victims_session);
  const std::optional<remote_descriptor> region_ = victim_.open("secret", access::read_write);
};

TEST_P(ForeignFrames, ReachNoRegionOfAnotherClient) {
  ASSERT_TRUE(region_);
  remote_descriptor missing = *region_;
  missing.region ^= 0x5555;
  for (const opcode code : all_opcodes()) {
    // These are of the connection, and about no region; see below.
    if (code == opcode::bye || code == opcode::farewell || code == opcode::hello ||
        code == opcode::control) {
      continue;
    }
    SCOPED_TRACE(static_cast<int>(code));
    const foreign_frame said = *said_as(code);
    const auto heard = heard_of(code, said, *region_);
    EXPECT_EQ(heard, heard_of(code, said, missing));
    if (!said.is_answered) {
      // A peer that passes files where there are none has broken the protocol.
      for (const auto& each : heard) {
        EXPECT_EQ(detail::decode_frame(each.first)->code, opcode::bye);
      }
      continue;
    }
    ASSERT_EQ(heard.size(), 1U);
    const auto answer = detail::decode_frame(heard.front().first);
    EXPECT_EQ(detail::status_error(answer->status), errc::no_such_region);
    EXPECT_TRUE(heard.front().second.empty());
  }
  EXPECT_TRUE(holds_pattern(memory_));
  // These are frames that do something, where they are of who has the region.
  for (const opcode code : all_opcodes()) {
    const foreign_frame said = *said_as(code);
    if (!said.is_answered) continue;
    SCOPED_TRACE(static_cast<int>(code));
    victim_.say(victim_.about(*region_, code), said.payload);
    const auto heard = heard_by(victim_);
    ASSERT_FALSE(heard.empty());
    EXPECT_EQ(detail::decode_frame(heard.front().first)->status, 0U);
  }
  EXPECT_FALSE(holds_pattern(memory_));
}

TEST_P(ForeignFrames, SpeakForNoOtherConnection) {
  ASSERT_TRUE(region_);
  for (const opcode code : all_opcodes()) {
    SCOPED_TRACE(static_cast<int>(code));
    wire_peer stranger = connected(strangers_session);
    frame said = stranger.about(*region_, code);
    said.session = victims_session;
    const foreign_frame row = *said_as(code);
    if (code == opcode::hello) {  // the connection has its session
      stranger.say(said, row.payload);
      stranger.say(stranger.about(*region_, opcode::read));
      const auto heard = stranger.next(opcode::data);
      EXPECT_TRUE(!heard || heard->said.status != 0);
    } else {
      stranger.say(said, row.payload);
      EXPECT_TRUE(stranger.hears_the_end());
    }
    EXPECT_TRUE(heard_by(victim_).empty());
  }
  EXPECT_TRUE(holds_pattern(memory_));
  victim_.say(victim_.about(*region_, opcode::read));
  const auto heard = victim_.next(opcode::data);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->said.status, 0U);
  EXPECT_TRUE(holds_pattern(heard->payload));
}

/// One that begins with the number of another's session has a session by itself.
TEST_P(ForeignFrames, GainNothingByTheNumberOfAnothersSession) {
  ASSERT_TRUE(region_);
  wire_peer stranger = connected(victims_session);
  stranger.say(stranger.about(*region_, opcode::read));
  const auto heard = stranger.next(opcode::data);
  ASSERT_TRUE(heard);
  EXPECT_EQ(detail::status_error(heard->said.status), errc::no_such_region);
  stranger.say(stranger.of(opcode::bye));
  EXPECT_TRUE(stranger.next(opcode::farewell));
  victim_.say(victim_.about(*region_, opcode::read));
  const auto answer = victim_.next(opcode::data);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->said.status, 0U);
}

INSTANTIATE_TEST_SUITE_P(Over, ForeignFrames, testing::Values("socket", "tls", "unix"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace ucx::test
