// Many peers whose messages are not taken share a number of bytes.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "message/message_exchange.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/message.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::loan_change;
using detail::parcel;
using detail::parcel_code;
using detail::untaken_budget;
using detail::window_unit;

constexpr std::size_t floor_bytes = untaken_budget::floor * window_unit;

std::size_t in_use(const worker& of) {
  return detail::core_access::core(of)->messages().budget().in_use() * window_unit;
}

simulated_pair_options with_number(std::size_t number) {
  simulated_pair_options options;
  options.owner_worker.untaken_messages = number;
  return options;
}

/// Many connections of one process to another, whose program takes nothing by itself.
struct crowd {
  crowd(std::size_t number, std::size_t count) : pair(with_number(number)) {
    for (std::size_t i = 0; i < count; ++i) {
      peers.push_back(pair.connect());
      peers.back().wait_connected();
    }
  }
  worker& receiver() { return pair.owner; }
  /// Everybody sends until nothing goes any more, also after loans have come.
  std::size_t flood(std::size_t size) {
    flooded = pattern(size);
    std::size_t sent = 0;
    for (bool any = true; any;) {
      any = false;
      for (endpoint& each : peers) {
        for (std::error_code ec; !ec;) {
          each.post_send(7, flooded, 0, {.backpressure = backpressure::fail}, ec);
          if (ec) continue;
          any = true;
          ++sent;
        }
      }
      pair.network.advance(1ms);
    }
    return sent;
  }

  std::vector<std::byte> flooded;  // lives longer than those who send it
  simulated_pair pair;
  std::vector<endpoint> peers;
};

TEST(UntakenMessages, OfManyPeersKeepWithinTheNumber) {
  constexpr std::size_t number = std::size_t{64} << 20U;
  constexpr std::size_t count = 1000;
  crowd all(number, count);
  const std::size_t before = ::mallinfo2().uordblks;
  const std::size_t sent = all.flood(1000);
  const std::size_t grown = ::mallinfo2().uordblks - before;
  EXPECT_LE(in_use(all.receiver()), number);
  EXPECT_LE(sent * 1000, number);
  EXPECT_GT(sent * 1000, number / 4) << "the half, less what messages take for themselves";
  EXPECT_LE(grown, number);
  std::size_t taken = 0;
  while (all.receiver().take(7)) {
    if (++taken % 100 == 0) all.pair.network.advance(1ms);
  }
  EXPECT_EQ(taken, sent);
}

/// Of 9 KB: whole while a peer has that much credit, and announced when it has less.
TEST(UntakenMessages, ThatAreWholeOrAnnouncedKeepWithinTheNumber) {
  constexpr std::size_t number = std::size_t{16} << 20U;
  constexpr std::size_t size = 9000;
  crowd all(number, 200);
  const std::size_t sent = all.flood(size);
  EXPECT_LE(in_use(all.receiver()), number);
  std::size_t whole = 0;
  std::size_t received = 0;
  std::vector<std::byte> into(size);
  while (std::optional<message> next = all.receiver().take(7)) {
    if (next->has_payload()) ++whole;
    request each = next->start_receive(into);
    ASSERT_TRUE(all.pair.network.run_until([&] { return each.done(); })) << received;
    ASSERT_FALSE(each.error()) << each.error().message();
    ASSERT_TRUE(holds_pattern(into));
    ++received;
  }
  EXPECT_EQ(received, sent);
  EXPECT_GT(whole * size, number / 4);
  EXPECT_LE(whole * size, number);
  EXPECT_GT(sent, whole) << "others were announced";
  all.peers.clear();
  all.pair.network.advance(5s);
  EXPECT_EQ(in_use(all.receiver()), 0U);
}

TEST(UntakenMessages, OfAPeerThatLeavesAreTheOthersRoomAtOnce) {
  constexpr std::size_t number = std::size_t{4} << 20U;
  crowd all(number, 20);
  const std::size_t full = in_use(all.receiver());
  all.peers.front().close(close_mode::abort);
  all.pair.network.advance(10ms);
  EXPECT_LT(in_use(all.receiver()), full - floor_bytes) << "it used nothing";
  all.peers.clear();
  all.pair.network.advance(5s);
  EXPECT_EQ(in_use(all.receiver()), 0U);
}

/// It says nothing of that: its silence does.
TEST(UntakenMessages, OfALostPeerAreTheOthersRoomButForWhatItSent) {
  constexpr std::size_t number = std::size_t{4} << 20U;
  constexpr std::size_t sent_before = 3;
  crowd all(number, 0);
  fake_process& process = all.pair.network.add_process("lost");
  std::error_code ec;
  const context parent = detail::core_access::make_context(process.api(), {}, ec);
  ASSERT_FALSE(ec);
  worker driver(parent);
  process.on_pump([&] { driver.progress(); });
  endpoint lost(driver, all.receiver().address());
  lost.wait_connected();
  const std::vector<std::byte> bytes = pattern(1000, 5);
  for (std::size_t i = 0; i < sent_before; ++i) lost.send(8, bytes);
  for (int i = 0; i < 20; ++i) {  // behind it, which has more
    all.peers.push_back(all.pair.connect());
    all.peers.back().wait_connected();
  }
  ASSERT_GT(all.flood(1000), 0U);
  ASSERT_EQ(all.flood(1000), 0U) << "all wait for credit";
  process.kill();
  all.pair.network.advance(30s);
  EXPECT_GT(all.flood(1000), 0U) << "they have what it did not use";
  EXPECT_LE(in_use(all.receiver()), number);
  all.peers.clear();
  while (all.receiver().take(7)) continue;
  all.pair.network.advance(5s);
  EXPECT_EQ(in_use(all.receiver()), sent_before * detail::units_of(1000) * window_unit);
  for (std::size_t i = 0; i < sent_before; ++i) {
    std::vector<std::byte> into(1000);
    all.receiver().start_receive(8, into).wait();
    EXPECT_TRUE(holds_pattern(into, 5));
  }
  EXPECT_EQ(in_use(all.receiver()), 0U);
}

TEST(UntakenMessages, CountUntilTheyAreTakenWhenTheirPeerIsGone) {
  crowd all(std::size_t{4} << 20U, 1);
  all.peers.front().send(7, pattern(10'000));
  all.pair.network.advance(1ms);
  all.peers.clear();
  all.pair.network.advance(5s);
  EXPECT_EQ(in_use(all.receiver()), detail::units_of(10'000) * window_unit);
  std::vector<std::byte> into(10'000);
  all.receiver().start_receive(7, into).wait();
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(in_use(all.receiver()), 0U);
}

TEST(UntakenMessages, OneThatIsReadGetsItsWindow) {
  simulated_pair_options options = with_number(std::size_t{4} << 20U);
  options.owner_worker.message_window = std::size_t{1} << 20U;
  simulated_pair pair(options);
  std::vector<endpoint> peers;
  const std::vector<std::byte> bytes = pattern(1000);
  for (int i = 0; i < 100; ++i) {
    peers.push_back(pair.connect());
    peers.back().wait_connected();
    for (std::error_code ec; !ec;) {
      peers.back().post_send(7, bytes, 0, {.backpressure = backpressure::fail}, ec);
      pair.network.advance(100us);
    }
  }
  endpoint read = pair.connect();
  read.wait_connected();
  std::size_t most = 0;
  std::size_t next = 0;
  for (int round = 0; round < 50; ++round) {
    std::size_t sent = 0;
    for (std::error_code ec; !ec;) {
      read.post_send(8, bytes, 0, {.backpressure = backpressure::fail}, ec);
      if (!ec) ++sent;
    }
    most = std::max(most, sent);
    pair.network.advance(1ms);
    while (pair.owner.take(8)) ++next;
    pair.network.advance(1ms);
  }
  EXPECT_GT(most * 1280, std::size_t{1} << 19U) << "three quarters of a window are told of";
  EXPECT_GT(next, most);
  EXPECT_LE(in_use(pair.owner), std::size_t{4} << 20U);
}

/// Nothing is left to lend, and all still goes.
TEST(UntakenMessages, EveryKindGoesWhereThereIsNothingToLend) {
  crowd all(std::size_t{1} << 20U, 40);
  all.flood(1000);
  endpoint sender = all.pair.connect();
  sender.wait_connected();
  const std::vector<std::byte> header = pattern(4096, 1);
  const std::vector<std::byte> long_one = pattern(std::size_t{1} << 20U, 2);
  const std::vector<std::byte> middle = pattern(60'000, 3);
  std::vector<message> came;
  all.receiver().on_message(3, [&](message next) { came.push_back(std::move(next)); });
  const auto end_well = [&](request& each) {
    EXPECT_TRUE(all.pair.network.run_until([&] { return each.done(); }));
    EXPECT_FALSE(each.error());
  };
  for (int i = 0; i < 20; ++i) {
    request active = sender.start_send(active_message{3, header}, long_one);
    ASSERT_TRUE(all.pair.network.run_until([&] { return !came.empty(); })) << i;
    EXPECT_TRUE(holds_pattern(came.back().header(), 1));
    std::vector<std::byte> into(long_one.size());
    request got = came.back().start_receive(into);
    end_well(got);
    end_well(active);
    EXPECT_TRUE(holds_pattern(into, 2));
    came.clear();
    request tagged = sender.start_send(9, middle);
    into.resize(middle.size());
    request receive = all.receiver().start_receive(9, into);
    end_well(receive);
    end_well(tagged);
    EXPECT_TRUE(holds_pattern(into, 3));
  }
  sender.send(10, pattern(8));
  endpoint back = [&] {
    EXPECT_TRUE(all.pair.network.run_until([&] { return all.receiver().probe(10).has_value(); }));
    return all.receiver().take(10)->peer();
  }();
  request stream = sender.start_stream_send(long_one);
  std::vector<std::byte> into(long_one.size());
  request streamed = back.start_stream_receive(into, stream_amount::all);
  end_well(streamed);
  end_well(stream);
  EXPECT_TRUE(holds_pattern(into, 2));
}

/// A peer that a test speaks for.
class LoanedRoom : public testing::Test {
 protected:
  explicit LoanedRoom(std::size_t number = std::size_t{256} << 20U)
      : pair_(options(number)), peer_(pair_.network, "peer") {
    peer_.room = 1000;
  }
  static simulated_pair_options options(std::size_t number) {
    simulated_pair_options chosen;
    chosen.reader_worker.untaken_messages = number;
    return chosen;
  }
  void connect(bool lends) {
    peer_.lends = lends;
    peer_.welcome_everybody();
    connection_.emplace(pair_.reader, peer_.its_address());
    connection_->wait_connected();
    pair_.network.advance(1ms);
    peer_.parcels.clear();
  }
  void say(loan_change what, std::uint64_t units) {
    parcel said;
    said.code = parcel_code::loan;
    said.session = peer_.guest_session;
    said.tag = static_cast<std::uint64_t>(what);
    said.length = units;
    peer_.say(peer_.guest, said);
    pair_.network.advance(1ms);
  }
  void give_credit(std::uint16_t units) {
    parcel said;
    said.code = parcel_code::credit;
    said.session = peer_.guest_session;
    said.credit = units;
    peer_.say(peer_.guest, said);
    pair_.network.advance(1ms);
  }
  /// Returns the next change that the peer heard of; none has passed.
  parcel heard() {
    frame_peer::heard_parcel next;
    return peer_.await(parcel_code::loan, next, 10ms) ? next.said : parcel{};
  }
  /// Returns how many messages of a unit go before there is no room.
  std::size_t fill() {
    std::size_t sent = 0;
    for (std::error_code ec; !ec; ++sent) {
      connection_->post_send(1, {}, 0, {.backpressure = backpressure::fail}, ec);
    }
    return sent - 1;
  }

  simulated_pair pair_;
  frame_peer peer_;
  std::optional<endpoint> connection_;
};

TEST_F(LoanedRoom, OfAnOlderPeerNeverChanges) {
  connect(false);
  EXPECT_EQ(fill(), 1000U);
  EXPECT_EQ(heard().code, parcel_code::credit) << "it is not spoken to in words that it has not";
  say(loan_change::want, 0);
  EXPECT_EQ(heard().code, parcel_code::credit);
  EXPECT_FALSE(connection_->status());
}

TEST_F(LoanedRoom, GrowsWhereTheLenderSaysSo) {
  connect(true);
  EXPECT_EQ(fill(), 1000U);
  parcel wants = heard();
  EXPECT_EQ(wants.code, parcel_code::loan);
  EXPECT_EQ(wants.tag, static_cast<std::uint64_t>(loan_change::want));
  EXPECT_EQ(heard().code, parcel_code::credit) << "it is said once";
  say(loan_change::more, 500);
  EXPECT_EQ(fill(), 500U);
  EXPECT_EQ(heard().tag, static_cast<std::uint64_t>(loan_change::want)) << "and once more";
}

TEST_F(LoanedRoom, ThatIsNotUsedIsGivenBack) {
  connect(true);
  say(loan_change::recall, 300);
  const parcel back = heard();
  EXPECT_EQ(back.tag, static_cast<std::uint64_t>(loan_change::back));
  EXPECT_EQ(back.length, 700U);
  EXPECT_EQ(fill(), 300U);
  heard();  // it wants more
  say(loan_change::recall, 100);
  const parcel none = heard();
  EXPECT_EQ(none.tag, static_cast<std::uint64_t>(loan_change::back));
  EXPECT_EQ(none.length, 0U) << "all is in use";
}

TEST_F(LoanedRoom, ShrinksByWhatWasUsed) {
  connect(true);
  fill();
  say(loan_change::less, 900);
  give_credit(100);
  EXPECT_EQ(fill(), 100U);
  EXPECT_FALSE(connection_->status());
  give_credit(101);
  EXPECT_EQ(connection_->status(), errc::protocol_error) << "more than it has lent";
}

/// What was to go whole when it was queued is announced.
TEST_F(LoanedRoom, ThatShrinksIsNoTrapForMessagesThatWait) {
  connect(true);
  fill();
  const std::vector<std::byte> bytes = pattern(60'000);
  request send = connection_->start_send(2, bytes);
  say(loan_change::less, 976);
  give_credit(1);
  frame_peer::heard_parcel announced;
  EXPECT_TRUE(peer_.await(parcel_code::announce, announced, 10ms));
  EXPECT_EQ(announced.said.length, bytes.size());
}

TEST_F(LoanedRoom, EndsTheConnectionWhereTheLenderLies) {
  connect(true);
  fill();
  say(loan_change::less, 1001);
  EXPECT_EQ(connection_->status(), errc::protocol_error);
}

TEST_F(LoanedRoom, EndsTheConnectionWhereTheLenderHasTooMuch) {
  connect(true);
  say(loan_change::more, ~std::uint64_t{0});
  EXPECT_EQ(connection_->status(), errc::protocol_error);
}

TEST_F(LoanedRoom, EndsTheConnectionWhereTheBorrowerGivesBackMore) {
  connect(true);
  say(loan_change::back, peer_.granted + 1);
  EXPECT_EQ(connection_->status(), errc::protocol_error);
}

TEST_F(LoanedRoom, IsTheFloorAtLeast) {
  connect(true);
  say(loan_change::back, peer_.granted);
  const parcel more = heard();
  EXPECT_EQ(more.tag, static_cast<std::uint64_t>(loan_change::more));
  EXPECT_EQ(more.length, untaken_budget::floor);
  EXPECT_FALSE(connection_->status());
  say(loan_change::want, 0);
  EXPECT_EQ(heard().length, 64U) << "and it gets more at once";
}

/// A peer that answers nothing, among others that are read and want more than there is.
class SilentBorrower : public LoanedRoom {
 protected:
  SilentBorrower() : LoanedRoom(std::size_t{1} << 20U) {}
  void connect_with_others() {
    connect(true);
    for (int i = 0; i < 20; ++i) {
      others_.emplace_back(pair_.owner, pair_.reader.address());
      others_.back().wait_connected();
    }
  }
  void pass(std::chrono::milliseconds time) {
    const std::vector<std::byte> bytes = pattern(1000);
    for (; time > 0ms; time -= 100ms) {
      for (endpoint& each : others_) {
        for (std::error_code ec; !ec;) {
          each.post_send(7, bytes, 0, {.backpressure = backpressure::fail}, ec);
        }
      }
      pair_.network.advance(1ms);
      while (pair_.reader.take(7)) continue;
      pair_.network.advance(99ms);
    }
  }
  /// Sends that many messages of a unit.
  void send(std::uint64_t count) {
    parcel said;
    said.code = parcel_code::message;
    said.session = peer_.guest_session;
    for (; count > 0 && !connection_->status(); --count) {
      said.number = ++sent_;
      peer_.say(peer_.guest, said);
      pair_.network.advance(1ms);
    }
  }
  /// Returns how many recalls have come.
  std::size_t recalls() {
    std::size_t found = 0;
    for (parcel next = heard(); next.code == parcel_code::loan; next = heard()) {
      if (next.tag == static_cast<std::uint64_t>(loan_change::recall)) ++found;
    }
    return found;
  }
  std::vector<endpoint> others_;
  std::uint64_t sent_ = 0;
};

TEST_F(SilentBorrower, MayAnswerWhileItIsWaitedFor) {
  connect_with_others();
  pass(2s);
  const parcel recall = heard();
  ASSERT_EQ(recall.tag, static_cast<std::uint64_t>(loan_change::recall));
  say(loan_change::back, 0);
  EXPECT_FALSE(connection_->status());
}

/// It computes, and has heard of no recall. Then it answers each: it has nothing left.
TEST_F(SilentBorrower, MayUseWhatItWasLentUntilItHears) {
  connect_with_others();
  pass(12s);
  send(peer_.granted);
  ASSERT_FALSE(connection_->status()) << "message " << sent_ << " of " << peer_.granted;
  const std::size_t asked = recalls();
  ASSERT_GE(asked, 2U) << "it was overdue";
  for (std::size_t i = 0; i < asked; ++i) say(loan_change::back, 0);
  EXPECT_FALSE(connection_->status());
  std::size_t arrived = 0;
  while (pair_.reader.take(0)) ++arrived;
  EXPECT_EQ(arrived, peer_.granted);
}

TEST_F(SilentBorrower, MayNotUseMoreThanItWasLent) {
  connect_with_others();
  pass(12s);
  send(peer_.granted);
  ASSERT_FALSE(connection_->status());
  send(1);
  EXPECT_EQ(connection_->status(), errc::protocol_error);
}

/// It is not to blame, but there is no memory for what it sends.
TEST_F(SilentBorrower, IsLostWhereOthersHaveAllRoom) {
  connect_with_others();
  pass(12s);
  untaken_budget& budget = detail::core_access::core(pair_.reader)->messages().budget();
  const std::size_t others = (std::size_t{1} << 20U) / window_unit;
  budget.keep(others);
  send(peer_.granted);
  EXPECT_EQ(connection_->status(), errc::no_memory);
  budget.release(others);
}

/// Each answer but the last may have crossed a later recall.
TEST_F(SilentBorrower, CanNotKeepWhatItHasLost) {
  connect_with_others();
  pass(12s);
  EXPECT_FALSE(connection_->status()) << "it may be silent";
  const std::size_t asked = recalls();
  ASSERT_GE(asked, 2U);
  for (std::size_t i = 1; i < asked; ++i) {
    say(loan_change::back, 0);
    ASSERT_FALSE(connection_->status()) << "answer " << i << " of " << asked;
  }
  say(loan_change::back, 0);
  EXPECT_EQ(connection_->status(), errc::protocol_error);
}

struct LittleRoom : LoanedRoom {
  LittleRoom() : LoanedRoom(std::size_t{64} << 10U) {}
};

TEST_F(LittleRoom, OfAPeerThatIsNotKnownHoldsALongestHeader) {
  connect(false);
  EXPECT_EQ(peer_.granted, (16U << 10U) / window_unit);
}

TEST_F(LittleRoom, OfAKnownPeerIsTheFloor) {
  std::vector<endpoint> others;
  for (int i = 0; i < 20; ++i) {
    others.emplace_back(pair_.owner, pair_.reader.address());
    others.back().wait_connected();
  }
  peer_.lends = true;
  ASSERT_TRUE(peer_.open_session(peer_.reach(pair_.reader.address()), 77));
  EXPECT_EQ(peer_.granted, untaken_budget::floor);
  peer_.lends = false;
  ASSERT_TRUE(peer_.open_session(peer_.reach(pair_.reader.address()), 78));
  EXPECT_EQ(peer_.granted, (16U << 10U) / window_unit);
}

}  // namespace
}  // namespace ucx::test
