// Peers that lie, or make no sense: nobody crashes, nobody hangs, and only lies end a connection.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

/// A reader of ours, connected to an owner that a test speaks for.
class LyingOwner : public testing::Test {
 protected:
  LyingOwner() : peer_(pair_.network, "liar") {
    peer_.welcome_everybody();
    connection_ = std::make_unique<endpoint>(pair_.reader, peer_.its_address());
    connection_->wait_connected();
    remote_descriptor descriptor;
    descriptor.region = 1;
    descriptor.size = 1 << 20;
    descriptor.granted = access::read_write;
    region_ = std::make_unique<remote_region>(*connection_, descriptor);
  }

  /// Starts a read of 100 bytes, and returns the question as the owner heard it.
  frame ask() {
    read_ = region_->start_read_at(0, std::span(into_).subspan(50, 100), {.timeout = 300ms});
    frame_peer::heard_frame question;
    EXPECT_TRUE(peer_.await(opcode::read, question));
    return question.said;
  }

  frame answer_to(const frame& question, std::uint64_t offset, std::uint64_t length) {
    frame answer;
    answer.code = question.code == opcode::read ? opcode::data : opcode::written;
    answer.session = question.session;
    answer.request = question.request;
    answer.offset = offset;
    answer.length = length;
    return answer;
  }

  void say(const frame& said, std::size_t payload) {
    peer_.say(peer_.guest, said, pattern(payload));
  }

  /// Waits for the read; nothing beside its memory may have been touched.
  std::error_code outcome() {
    std::error_code ec;
    read_.wait(ec);
    pair_.network.advance(1ms);
    EXPECT_TRUE(all_bytes_are(std::span(into_).first(50), untouched));
    EXPECT_TRUE(all_bytes_are(std::span(into_).subspan(150), untouched));
    return ec;
  }

  void expect_blamed() {
    EXPECT_EQ(outcome(), errc::protocol_error);
    EXPECT_EQ(connection_->status(), errc::protocol_error);
  }

  simulated_pair pair_;
  frame_peer peer_;
  std::unique_ptr<endpoint> connection_;
  std::unique_ptr<remote_region> region_;
  std::vector<std::byte> into_ = std::vector<std::byte>(200, untouched);
  request read_;
};

TEST_F(LyingOwner, TruthIsBelieved) {
  const frame question = ask();
  say(answer_to(question, 60, 40), 40);
  say(answer_to(question, 0, 60), 60);
  EXPECT_FALSE(outcome());
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(50, 60)));
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(110, 40)));
}

TEST_F(LyingOwner, MoreBytesThanWereAskedForAreALie) {
  say(answer_to(ask(), 0, 101), 101);
  expect_blamed();
}

TEST_F(LyingOwner, BytesForElsewhereAreALie) {
  say(answer_to(ask(), 91, 10), 10);
  expect_blamed();
}

TEST_F(LyingOwner, BytesFarOutsideAreALie) {
  say(answer_to(ask(), ~std::uint64_t{0} - 4, 10), 10);
  expect_blamed();
}

TEST_F(LyingOwner, LengthThatIsNotThePayloadsIsALie) {
  say(answer_to(ask(), 0, 100), 99);
  expect_blamed();
}

TEST_F(LyingOwner, AnswerWithoutBytesIsALie) {
  say(answer_to(ask(), 0, 0), 0);
  expect_blamed();
}

TEST_F(LyingOwner, BytesThatCameBeforeAreALie) {
  const frame question = ask();
  say(answer_to(question, 0, 50), 50);
  say(answer_to(question, 0, 50), 50);
  expect_blamed();
}

TEST_F(LyingOwner, BytesThatOverlapAreALie) {
  const frame question = ask();
  say(answer_to(question, 50, 50), 50);
  say(answer_to(question, 10, 50), 50);
  expect_blamed();
}

TEST_F(LyingOwner, AnswerOfAnotherKindIsALie) {
  frame answer = answer_to(ask(), 0, 100);
  answer.code = opcode::written;
  say(answer, 0);
  expect_blamed();
}

TEST_F(LyingOwner, ReadThatIsNeverAnsweredInFullTimesOut) {
  say(answer_to(ask(), 0, 99), 99);
  EXPECT_EQ(outcome(), errc::timed_out);
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingOwner, LateBytesAreDropped) {
  const frame question = ask();
  EXPECT_EQ(outcome(), errc::timed_out);
  say(answer_to(question, 0, 100), 100);
  pair_.network.advance(10ms);
  EXPECT_TRUE(all_bytes_are(into_, untouched));
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingOwner, AnswersToOtherQuestionsAreDropped) {
  const frame question = ask();
  for (const std::uint64_t id : {std::uint64_t{0}, question.request + 1,
                                 question.request ^ (std::uint64_t{1} << 40U), ~std::uint64_t{0}}) {
    frame answer = answer_to(question, 0, 101);
    answer.request = id;
    say(answer, 101);
  }
  frame answer = answer_to(question, 0, 101);
  ++answer.session;
  say(answer, 101);
  say(answer_to(question, 0, 100), 100);
  EXPECT_FALSE(outcome());
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingOwner, AnswerOverAnotherConnectionIsDropped) {
  const frame question = ask();
  frame_peer other(pair_.network, "other liar");
  other.welcome_everybody();
  endpoint second(pair_.reader, other.its_address());
  second.wait_connected();
  frame answer = answer_to(question, 0, 100);
  answer.session = other.guest_session;
  other.say(other.guest, answer, pattern(100, 9));
  pair_.network.advance(10ms);
  EXPECT_TRUE(all_bytes_are(into_, untouched));
  say(answer_to(question, 0, 100), 100);
  EXPECT_FALSE(outcome());
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(50, 100)));
}

TEST_F(LyingOwner, UnknownStatusIsAProtocolErrorOfThatOperationOnly) {
  frame answer = answer_to(ask(), 0, 0);
  answer.status = 4711;
  say(answer, 0);
  EXPECT_EQ(outcome(), errc::protocol_error);
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingOwner, RefusalEndsTheOperation) {
  frame answer = answer_to(ask(), 0, 0);
  answer.status = detail::error_status(errc::busy);
  say(answer, 0);
  EXPECT_EQ(outcome(), errc::busy);
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingOwner, ConfirmingMoreThanWasWrittenIsALie) {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{101}, ~std::uint64_t{0}}) {
    endpoint connection(pair_.reader, peer_.its_address());
    connection.wait_connected();
    remote_descriptor descriptor;
    descriptor.size = 1000;
    descriptor.granted = access::read_write;
    remote_region region(connection, descriptor);
    request write = region.start_write_at(0, pattern(100));
    frame_peer::heard_frame question;
    ASSERT_TRUE(peer_.await(opcode::write, question));
    say(answer_to(question.said, 0, length), 0);
    std::error_code ec;
    region.flush({}, ec);
    EXPECT_EQ(ec, errc::protocol_error) << length;
    EXPECT_EQ(connection.status(), errc::protocol_error);
    EXPECT_EQ(region.first_unconfirmed(), 0U);
    write.wait(ec);
  }
}

TEST_F(LyingOwner, ConfirmingTwiceIsALie) {
  request write = region_->start_write_at(0, pattern(100));
  request second = region_->start_write_at(100, pattern(100));
  frame_peer::heard_frame question;
  ASSERT_TRUE(peer_.await(opcode::write, question));
  say(answer_to(question.said, 0, 60), 0);
  say(answer_to(question.said, 0, 60), 0);
  std::error_code ec;
  region_->flush({}, ec);
  EXPECT_EQ(ec, errc::protocol_error);
  EXPECT_EQ(region_->first_unconfirmed(), 60U);
}

TEST_F(LyingOwner, ByeOfAnOwnerEndsTheConnection) {
  const frame question = ask();
  frame bye;
  bye.code = opcode::bye;
  bye.session = question.session;
  read_ = request();
  std::vector<std::byte> into(10);
  request read = region_->start_read_at(0, into);
  say(bye, 0);
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::closed_by_peer);
  EXPECT_EQ(connection_->status(), errc::closed_by_peer);
}

TEST_F(LyingOwner, WelcomeAfterWelcomeChangesNothing) {
  const frame question = ask();
  frame again;
  again.code = opcode::welcome;
  again.session = question.session;
  say(again, 0);
  again.status = detail::error_status(errc::version_mismatch);
  say(again, 0);
  say(answer_to(question, 0, 100), 100);
  EXPECT_FALSE(outcome());
  EXPECT_FALSE(connection_->status());
}

/// Returns a frame that writes into, reads from, or asks something of `region`.
frame about(const remote_descriptor& region, opcode code, std::uint64_t session) {
  frame said;
  said.code = code;
  said.session = session;
  said.region = region.region;
  said.incarnation = region.incarnation;
  said.generation = region.generation;
  said.length = 100;
  return said;
}

TEST(RefusedPeer, IsNotServed) {
  for (const bool refuses : {false, true}) {
    simulated_pair pair;
    std::optional<worker> strict;
    strict.emplace(pair.owner_context, worker_options{.terms = {.require_rdma = refuses}});
    pair.owner_process.on_pump([&] { strict->progress(); });
    std::vector<std::byte> memory(200, untouched);
    memory_region writable(pair.owner_context, std::span(memory), access::read_write);
    const remote_descriptor known = writable.descriptor();
    {
      frame_peer peer(pair.network, "peer");
      constexpr std::uint64_t session = 77;
      const ucp_ep_h to = peer.reach(strict->address());
      ASSERT_EQ(peer.open_session(to, session), !refuses);
      pair.network.advance(1ms);
      const std::size_t told = peer.heard.size();  // it was told to leave, already
      peer.say(to, about(known, opcode::write, session), pattern(100));
      peer.say(to, about(known, opcode::read, session));
      peer.say(to, about(known, opcode::notify, session));
      peer.say(to, about(known, opcode::ping, session));
      peer.say(to, about(known, opcode::control, session), pattern(100));
      peer.say(to, about(known, opcode::bye, session));
      pair.network.advance(10ms);
      EXPECT_EQ(all_bytes_are(memory, untouched), refuses);
      EXPECT_EQ(peer.heard.size() == told, refuses);
    }
    pair.network.advance(10s);
    pair.owner_process.on_pump([&] { pair.owner.progress(); });
    strict.reset();
  }
}

/// Makes frames of which a good part gets past the first checks.
class frame_maker {
 public:
  explicit frame_maker(std::uint64_t seed) : random_(seed) {}

  std::uint64_t number() { return random_(); }
  bool chance(unsigned of_hundred) { return random_() % 100 < of_hundred; }

  std::uint64_t size() {
    switch (random_() % 6) {
      case 0:
        return 0;
      case 1:
        return random_() % 100;
      case 2:
        return ~std::uint64_t{0} - random_() % 100;
      case 3:
        return std::uint64_t{1} << (random_() % 64);
      default:
        return random_() % 5000;
    }
  }

  template <class Container>
  auto any_of(const Container& from) {
    return from[random_() % from.size()];
  }

  frame random_frame(const std::vector<std::uint64_t>& sessions,
                     const std::vector<std::uint64_t>& requests, const remote_descriptor& known) {
    frame made;
    made.code = static_cast<opcode>(random_() % 12);
    made.status = chance(70) ? 0 : static_cast<std::uint32_t>(random_() % 40);
    made.session = any_of(sessions);
    made.request = any_of(requests);
    made.region = chance(80) ? known.region : random_() % 4;
    made.incarnation = chance(90) ? known.incarnation : random_();
    made.generation = chance(90) ? known.generation : random_();
    made.offset = size();
    made.length = size();
    return made;
  }

  std::vector<std::byte> payload(const frame& made) {
    if (chance(40) && made.length < 10000) return pattern(made.length, 3);
    return chance(50) ? std::vector<std::byte>() : pattern(random_() % 300, 4);
  }

  /// Encodes, and damages some.
  std::vector<std::byte> bytes_of(const frame& made) {
    frame::bytes bytes;
    made.encode(bytes);
    std::vector<std::byte> wire(bytes.begin(), bytes.end());
    if (chance(15)) wire[random_() % wire.size()] ^= static_cast<std::byte>(1U << random_() % 8);
    if (chance(5)) wire.resize(random_() % 100);
    return wire;
  }

 private:
  std::mt19937_64 random_;
};

class HostileFrames : public testing::TestWithParam<std::uint64_t> {};

TEST_P(HostileFrames, OwnerServesTheNextOne) {
  frame_maker maker(GetParam());
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(3000);
  std::vector<std::byte> scratch(3000);
  // Writable bytes between bytes that are nobody's.
  memory_region exposed(pair.owner_context, std::span<const std::byte>(memory));
  memory_region writable(pair.owner_context, std::span(scratch).subspan(1000, 1000),
                         access::read_write);
  {
    frame_peer peer(pair.network, "hostile");
    const ucp_ep_h to = peer.reach(pair.owner.address());
    const std::vector<std::byte> address = peer.its_address().encode();
    const std::vector<std::uint64_t> sessions{0, 1, 1, 1, 1, 2, 3, ~std::uint64_t{0}};
    const std::vector<std::uint64_t> requests{0, 1, std::uint64_t{1} << 32U, maker.number()};
    for (int round = 0; round < 1500; ++round) {
      if (round == 300) peer.open_session(to, 1);
      const remote_descriptor known =
          maker.chance(50) ? exposed.descriptor() : writable.descriptor();
      const frame made = maker.random_frame(sessions, requests, known);
      const bool hello = made.code == opcode::hello && maker.chance(10);
      peer.say_bytes(to, maker.bytes_of(made), hello ? address : maker.payload(made),
                     maker.chance(30) ? unsigned{UCP_AM_SEND_FLAG_REPLY} : 0U);
      if (round % 50 == 0) pair.network.advance(1ms);
    }
    pair.network.advance(100ms);
  }
  pair.network.advance(10s);
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  std::vector<std::byte> into(3000);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_TRUE(all_bytes_are(std::span(scratch).first(1000), std::byte{0}));
  EXPECT_TRUE(all_bytes_are(std::span(scratch).last(1000), std::byte{0}));
}

TEST_P(HostileFrames, ReadersOperationsAllEnd) {
  frame_maker maker(GetParam() + 1000);
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 200ms;
  options.reader_worker.close_timeout = 100ms;
  simulated_pair pair(options);
  for (int connections = 0; connections < 15; ++connections) {
    frame_peer peer(pair.network, "hostile");
    peer.welcome_everybody();
    endpoint connection(pair.reader, peer.its_address());
    remote_descriptor known;
    known.region = 1;
    known.size = 1 << 20;
    known.granted = access::read_write;
    remote_region region(connection, known);
    std::vector<std::vector<std::byte>> buffers;
    std::vector<request> all;
    for (const std::size_t size : {1U, 100U, 5000U}) {
      auto& into = buffers.emplace_back(size);  // of its own size: an overrun is seen
      all.push_back(region.start_read_at(0, into));
      auto& from = buffers.emplace_back(pattern(size));
      all.push_back(region.start_write_at(0, from));
    }
    all.push_back(region.start_flush());
    pair.network.advance(1ms);
    std::vector<std::uint64_t> requests{0, maker.number()};
    for (const auto& each : peer.heard) {
      for (int weight = 0; weight < 4; ++weight) requests.push_back(each.said.request);
    }
    const std::vector<std::uint64_t> sessions{
        0, 7, peer.guest_session, peer.guest_session, peer.guest_session, peer.guest_session};
    for (int round = 0; round < 100; ++round) {
      frame made = maker.random_frame(sessions, requests, known);
      if (maker.chance(60)) made.code = maker.chance(50) ? opcode::data : opcode::written;
      peer.say_bytes(peer.guest, maker.bytes_of(made), maker.payload(made));
    }
    const auto begin = pair.network.now();
    for (request& each : all) {
      std::error_code ec;
      each.wait(ec);
      EXPECT_TRUE(each.done());
    }
    EXPECT_LT(pair.network.now() - begin, 1500ms);
    const std::error_code status = connection.status();
    EXPECT_TRUE(!status || status == errc::protocol_error || status == errc::connection_reset)
        << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileFrames, testing::Range<std::uint64_t>(0, 10));

}  // namespace
}  // namespace ucx::test
