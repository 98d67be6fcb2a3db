// Regions of peers that have UCX alone, and connections to these, over the simulation.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/staged_transfers.hpp"
#include "foreign_pair.hpp"
#include "support/basics/mentions.hpp"
#include "support/bytes/pattern.hpp"
#include "support/replaced/shortage.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ForeignRegion, IsReachedByHardwareWithoutAMessage) {
  foreign_pair all(by_hardware());
  const endpoint connection = all.connect();
  EXPECT_EQ(connection.state(), connection_state::active);
  remote_region region(connection, all.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  EXPECT_EQ(region.size(), foreign_size);
  std::vector<std::byte> into(foreign_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  const std::vector<std::byte> from = pattern(100, 7);
  region.write_at(8, from);
  region.flush();
  EXPECT_TRUE(holds_pattern(std::span(all.memory).subspan(8, 100), 7));
  EXPECT_EQ(all.pair.reader_process.count(call::am_send), 0U);
  EXPECT_EQ(all.pair.owner_process.count(call::am_send), 0U);
}

TEST(ForeignRegion, IsCheckedHere) {
  foreign_pair all(by_hardware());
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(access::read));
  std::vector<std::byte> some(8);
  std::error_code ec;
  region.read_at(foreign_size - 7, some, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.write_at(0, some, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST(ForeignRegion, HasNothingThatItsOwnerWouldAnswer) {
  foreign_pair all(by_hardware());
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor());
  std::error_code ec;
  region.notify(1, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  remote_atomic<std::uint64_t>(region, 0).load({}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  std::vector<std::byte> some(8);
  region.read_at(0, some, {.verify = true}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(region.content(), content_id());
  EXPECT_FALSE(region.can_refresh_size());
  const std::string why = region.why_not(transfer_method::message);
  EXPECT_TRUE(mentions(why, "answers no messages")) << why;
  EXPECT_EQ(all.pair.reader_process.count(call::am_send), 0U);
}

TEST(ForeignRegion, NeverGoesByMessageToAPeerThatAnswers) {
  foreign_pair all(by_hardware());
  const endpoint connection = all.connect(false);
  remote_region region(connection, all.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  const std::uint64_t sent = all.pair.reader_process.count(call::am_send);
  std::vector<std::byte> into(foreign_size);
  std::error_code ec;
  // Memory that can not be registered: a region of this library's goes by message.
  all.pair.reader_process.faults().fail(call::get, UCS_ERR_IO_ERROR);
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  for (const transfer_method each :
       {transfer_method::message, transfer_method::mapped, transfer_method::cma}) {
    const remote_region refused(connection, all.descriptor(),
                                {.transfer_method = each, .trusted_peer = true}, ec);
    EXPECT_EQ(ec, errc::not_supported);
  }
  EXPECT_EQ(all.pair.reader_process.count(call::am_send), sent);
}

TEST(ForeignRegion, OverEmulatedRmaIsForTrustedPeers) {
  foreign_pair all({});
  const endpoint connection = all.connect();
  try {
    const remote_region refused(connection, all.descriptor());
    FAIL() << "it was opened";
  } catch (const error& why) {
    EXPECT_EQ(why.code(), errc::not_supported);
    EXPECT_TRUE(mentions(why.what(), "trusted_peer")) << why.what();
  }
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> into(foreign_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  // Of this library's regions the option changes nothing.
  const endpoint greeted = all.connect(false);
  const remote_region known(greeted, all.owned.descriptor(), {.trusted_peer = true});
  EXPECT_EQ(known.transfer_method(), transfer_method::message);
}

TEST(ForeignRegion, ThatIsGivenUpTakesTheConnection) {
  foreign_pair all(by_hardware());
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor());
  all.pair.reader_process.faults().delay(call::get, 10s);
  std::vector<std::byte> into(foreign_size);
  std::error_code ec;
  region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(connection.state(), connection_state::failed);
}

// Over RMA that UCX emulates, bytes go through memory of the connection's.

constexpr std::size_t two_pieces = 2 * detail::staged_transfers::longest_read;

TEST(StagedTransfer, ThatIsGivenUpLeavesTheConnection) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> into(long_foreign_size);
  all.pair.reader_process.faults().delay(call::get, 10s, 2);
  std::error_code ec;
  region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(connection.state(), connection_state::active);
  std::fill(into.begin(), into.end(), std::byte{7});
  all.pair.network.advance(20s);
  EXPECT_EQ(std::count(into.begin(), into.end(), std::byte{7}), std::ssize(into))
      << "UCX wrote into memory that was given back";
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(StagedTransfer, ThatIsCanceledEndsAtOnce) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> into(long_foreign_size);
  all.pair.reader_process.faults().delay(call::get, 10s, 1);
  request read = region.start_read_at(0, into);
  const request behind = region.start_read_at(0, std::span(into).first(8));
  read.cancel();
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.error(), errc::canceled);
  EXPECT_EQ(connection.state(), connection_state::active);
  all.pair.network.advance(20s);
  EXPECT_TRUE(behind.done());
  EXPECT_FALSE(behind.error());
}

TEST(StagedTransfer, OfAReadMayGetOtherMemory) {
  foreign_pair all({}, two_pieces);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> first(two_pieces, std::byte{7});
  std::vector<std::byte> second(two_pieces);
  std::vector<std::byte> third(two_pieces);
  all.pair.reader_process.faults().delay(call::get, 10s, 2);
  request read = region.start_read_at(0, first);
  EXPECT_FALSE(read.rebind(std::span(second).first(two_pieces - 1)));
  EXPECT_TRUE(read.rebind(second));
  ASSERT_TRUE(all.pair.network.run_until([&] { return second.front() != std::byte{}; }));
  EXPECT_TRUE(read.rebind(third)) << "with what has come";
  std::ranges::fill(second, std::byte{7});
  read.wait();
  EXPECT_TRUE(holds_pattern(third));
  EXPECT_TRUE(all_bytes_are(first, std::byte{7}));
  EXPECT_TRUE(all_bytes_are(second, std::byte{7}));
  EXPECT_FALSE(read.rebind(first)) << "it has ended";
  request write = region.start_write_at(0, third);
  EXPECT_FALSE(write.rebind(first));
  EXPECT_FALSE(write.rebind({}));
  write.wait();
}

TEST(StagedTransfer, OfAReadKeepsItsMemoryWhereOrderIsLost) {
  foreign_pair all({}, two_pieces);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> first(two_pieces);
  std::vector<std::byte> second(two_pieces, std::byte{7});
  all.pair.reader_process.faults().delay(call::get, 10s, 1);
  request read = region.start_read_at(0, first);
  const auto has_come = [&] {
    return first[detail::staged_transfers::longest_read] != std::byte{};
  };
  ASSERT_TRUE(all.pair.network.run_until(has_come));
  EXPECT_FALSE(read.rebind(second));
  read.wait();
  EXPECT_TRUE(holds_pattern(first));
  EXPECT_TRUE(all_bytes_are(second, std::byte{7}));
}

TEST(StagedTransfer, HasABoundOfWhatUcxHas) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::vector<std::byte> into(long_foreign_size);
  all.pair.reader_process.faults().delay(call::get, 60s, 0);
  std::error_code ec;
  for (int i = 0; i < 10; ++i) region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(all.pair.reader_process.count(call::get), 8U);
  EXPECT_EQ(connection.state(), connection_state::active);
  all.pair.reader_process.faults().clear();
  all.pair.network.advance(60s);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

/// Whatever sizes come one after the other.
TEST(StagedTransfer, KeepsBoundedMemory) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  const auto in_use = [] {
    const struct mallinfo2 told = ::mallinfo2();
    return told.uordblks + told.hblkhd;
  };
  const std::size_t before = in_use();
  for (const std::size_t size : {8000U, 60'000U, 250'000U}) {
    std::vector<std::byte> into(std::size_t{4} << 20U);
    std::vector<request> reads;
    all.pair.reader_process.faults().delay(call::get, 10s, 0);
    for (std::size_t at = 0; at + size <= into.size(); at += size) {
      reads.push_back(region.start_read_at(7, std::span(into).subspan(at, size)));
    }
    all.pair.reader_process.faults().clear();
    for (request& each : reads) each.wait();
    EXPECT_TRUE(holds_pattern(std::span(into).first(size), 0, 7));
  }
  EXPECT_LT(in_use() - before, std::size_t{5} << 20U) << "4 MiB of it are of the transfers";
}

TEST(StagedTransfer, KeepsTheOrderOfWritesAndTheirFlush) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  const std::vector<std::byte> first = pattern(long_foreign_size, 3);
  const std::vector<std::byte> second = pattern(long_foreign_size - 5, 9);
  request one = region.start_write_at(0, first);
  request two = region.start_write_at(5, second);
  request all_there = region.start_flush();
  all_there.wait();
  one.wait();
  two.wait();
  EXPECT_TRUE(holds_pattern(std::span(all.memory).first(5), 3));
  EXPECT_TRUE(holds_pattern(std::span(all.memory).subspan(5), 9));
}

TEST(StagedTransfer, ThatTimesOutEndsTheFlushBehindIt) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  const std::vector<std::byte> from = pattern(long_foreign_size, 3);
  all.pair.reader_process.faults().delay(call::put, 10s, 1);
  request write = region.start_write_at(0, from, {.timeout = 1s});
  request flush = region.start_flush({.timeout = 2s});
  write.wait_for(60s);
  EXPECT_EQ(write.error(), errc::timed_out);
  EXPECT_EQ(connection.state(), connection_state::active);
  std::error_code ec;
  flush.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  all.pair.network.advance(20s);
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::timed_out) << "it tells of the write, once";
  EXPECT_EQ(region.first_unconfirmed(), 0U);
  region.write_at(0, from);
  region.flush({}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(holds_pattern(all.memory, 3));
}

TEST(StagedTransfer, EndsWithItsConnection) {
  for (const call each : {call::get, call::put}) {
    foreign_pair all({}, long_foreign_size);
    const endpoint connection = all.connect();
    remote_region region(connection, all.descriptor(), {.trusted_peer = true});
    std::vector<std::byte> some(long_foreign_size);
    all.pair.reader_process.faults().fail_late(each, UCS_ERR_CONNECTION_RESET, 3);
    std::error_code ec;
    request begun =
        each == call::get ? region.start_read_at(0, some) : region.start_write_at(0, some);
    request flush = region.start_flush();
    begun.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
    flush.wait_for(60s, ec);
    EXPECT_TRUE(flush.done());
    EXPECT_EQ(connection.state(), connection_state::failed);
    all.pair.network.advance(1s);  // what is on the way needs the owner's memory
  }
}

TEST(StagedTransfer, ThatUcxHasIsLeftToItWhenTheConnectionCloses) {
  for (const bool handles_first : {false, true}) {
    foreign_pair all({}, long_foreign_size);
    std::optional<endpoint> connection(all.connect());
    std::optional<remote_region> region(std::in_place, *connection, all.descriptor(),
                                        remote_region_options{.trusted_peer = true});
    std::vector<std::byte> into(long_foreign_size);
    all.pair.reader_process.faults().delay(call::get, 60s, 1);
    std::error_code ec;
    region->read_at(0, into, {.timeout = 1s}, ec);
    EXPECT_EQ(ec, errc::timed_out);
    connection->close(close_mode::abort);
    EXPECT_EQ(connection->state(), connection_state::closed);
    EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 0U);
    if (handles_first) {
      region.reset();
      connection.reset();
    }
    all.pair.network.advance(60s);
    all.pair.reader.progress();
    EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 1U);
  }
}

/// A write is done before the peer has answered.
TEST(StagedTransfer, ConnectionIsClosedWhenWritesWereAnswered) {
  foreign_pair all({}, long_foreign_size);
  endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  const std::vector<std::byte> from = pattern(long_foreign_size, 3);
  region.write_at(0, from);
  all.pair.reader_process.faults().delay(call::ep_flush, 60s, 1);
  connection.close(close_mode::abort);
  EXPECT_EQ(connection.state(), connection_state::closed);
  EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 0U);
  all.pair.network.advance(61s);
  all.pair.reader.progress();
  EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 1U);
  EXPECT_TRUE(holds_pattern(all.memory, 3));
}

TEST(StagedTransfer, LeavesAFewConnectionsToUcx) {
  foreign_pair all({}, long_foreign_size);
  std::vector<std::byte> into(long_foreign_size);
  constexpr unsigned more_than_enough = 20;
  for (unsigned i = 0; i < more_than_enough; ++i) {
    endpoint connection = all.connect();
    remote_region region(connection, all.descriptor(), {.trusted_peer = true});
    all.pair.reader_process.faults().delay(call::get, 3600s, 1);
    std::error_code ec;
    region.read_at(0, into, {.timeout = 1s}, ec);
    EXPECT_EQ(ec, errc::timed_out);
    connection.close(close_mode::abort);
  }
  EXPECT_EQ(all.pair.reader_process.count(call::ep_close), more_than_enough - 16U);
}

/// UCX says so of what a lost connection took with it, before it tells of the loss.
TEST(ForeignRegion, SaysResetWhereUcxSaysCanceled) {
  for (const call each : {call::get, call::put, call::ep_flush}) {
    for (const bool late : {false, true}) {
      SCOPED_TRACE(std::string(to_string(each)) + (late ? ", late" : ""));
      foreign_pair all(by_hardware());
      const endpoint connection = all.connect();
      remote_region region(connection, all.descriptor());
      fault_plan& faults = all.pair.reader_process.faults();
      if (late) {
        faults.fail_late(each, UCS_ERR_CANCELED);
      } else {
        faults.fail(each, UCS_ERR_CANCELED);
      }
      std::vector<std::byte> some(8);
      std::error_code ec;
      if (each == call::get) region.read_at(0, some, {}, ec);
      if (each != call::get) region.write_at(0, some, {}, ec);
      if (!ec && each != call::get) region.flush({}, ec);
      EXPECT_EQ(ec, errc::connection_reset) << ec.message();
    }
  }
}

TEST(PlainConnection, SendsAndTakesNoMessages) {
  foreign_pair all(by_hardware());
  endpoint connection = all.connect();
  std::vector<std::byte> some(8);
  std::error_code ec;
  connection.send(1, some, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  connection.stream_send(some, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  connection.receive(1, some, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  connection.stream_receive(some, stream_amount::all, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(all.pair.reader_process.count(call::am_send), 0U);
}

TEST(PlainConnection, ToARegionOfThisLibraryHasNoMessagesEither) {
  foreign_pair all({});
  const endpoint connection = all.connect();
  std::error_code ec;
  const remote_region refused(connection, all.owned.descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(PlainConnection, OutlivesSilenceAndCloses) {
  foreign_pair all(by_hardware());
  endpoint connection = all.connect();
  remote_region region(connection, all.descriptor());
  all.pair.network.advance(60s);
  EXPECT_EQ(connection.state(), connection_state::active);
  std::vector<std::byte> into(foreign_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  region.close();
  connection.close();
  EXPECT_EQ(connection.state(), connection_state::closed);
  EXPECT_EQ(all.pair.reader_process.count(call::am_send), 0U);
}

TEST(PlainConnection, IsHeldToItsTerms) {
  foreign_pair all({});
  for (const connection_terms& terms :
       {connection_terms{.require_rdma = true}, connection_terms{.transports = {"rc"}}}) {
    endpoint connection(all.pair.reader, all.pair.owner.address(),
                        {.terms = terms, .plain_peer = true});
    std::error_code ec;
    connection.wait_connected(ec);
    EXPECT_EQ(ec, terms.require_rdma ? errc::no_rdma : errc::not_supported);
  }
}

TEST(PlainConnection, IsFencedWithoutItsPeer) {
  foreign_pair all(by_hardware());
  endpoint connection = all.connect();
  remote_region region(connection, all.descriptor());
  all.pair.reader_process.faults().delay(call::put, 60s);
  const std::vector<std::byte> from = pattern(100, 7);
  const request begun = region.start_write_at(0, from);
  const auto before = all.pair.network.now();
  connection.fence();
  EXPECT_EQ(all.pair.network.now(), before) << "it waited";
  EXPECT_EQ(all.pair.network.count(call::worker_fence), 1U);
  connection.close(close_mode::abort);
}

TEST(PlainConnection, WhoseWiringFailsFails) {
  foreign_pair all(by_hardware());
  for (const bool late : {false, true}) {
    if (late)
      all.pair.reader_process.faults().fail_late(call::ep_flush, UCS_ERR_UNREACHABLE);
    else
      all.pair.reader_process.faults().fail(call::ep_flush, UCS_ERR_UNREACHABLE);
    endpoint connection(all.pair.reader, all.pair.owner.address(), {.plain_peer = true});
    std::error_code ec;
    connection.wait_connected(ec);
    EXPECT_EQ(ec, errc::unreachable) << late;
    EXPECT_EQ(connection.state(), connection_state::failed);
  }
}

TEST(PlainConnection, WhoseWiringTakesTooLongTimesOut) {
  foreign_pair all(by_hardware());
  all.pair.reader_process.faults().delay(call::ep_flush, 60s);
  endpoint connection(all.pair.reader, all.pair.owner.address(),
                      {.connect_timeout = 2s, .plain_peer = true});
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(connection.state(), connection_state::failed);
}

/// The peer may be stopped, and would be ended by the answer to what it reads then.
TEST(PlainConnection, ThatIsNotWiredInTimeIsLeftToUcx) {
  foreign_pair all({});
  all.pair.reader_process.faults().delay(call::ep_flush, 60s);
  endpoint connection(all.pair.reader, all.pair.owner.address(),
                      {.connect_timeout = 2s, .plain_peer = true});
  std::error_code ec;
  connection.wait_connected(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 0U);
  all.pair.network.advance(60s);
  all.pair.reader.progress();
  EXPECT_EQ(all.pair.reader_process.count(call::ep_close), 1U);
}

/// Returns whether anything was short while such a connection was made.
bool connect_without_memory(std::uint64_t point) {
  foreign_pair all(by_hardware());
  const worker_address where = all.pair.owner.address();
  std::optional<endpoint> connection;
  std::uint64_t failed = 0;
  {
    const lasting_shortage meanwhile(point);
    const callback_scope ours(true);
    try {
      connection.emplace(all.pair.reader, where, endpoint_options{.plain_peer = true});
      all.pair.reader.progress();
    } catch (const std::bad_alloc&) {
    } catch (const error& why) {
      EXPECT_EQ(why.code(), errc::no_memory) << why.what();
    }
    failed = current_shortage.failed;
  }
  if (connection) {
    std::error_code ec;
    connection->wait_connected(ec);
    EXPECT_TRUE(!ec || ec == errc::no_memory) << point << ": " << ec.message();
  }
  return failed > 0;
}

TEST(PlainConnection, IsMadeOrFailsWhereMemoryIsShort) {
  std::uint64_t point = 0;
  while (connect_without_memory(point))
    ASSERT_LT(++point, 500U) << "it asks for memory without end";
  EXPECT_GT(point, 3U);
}

}  // namespace
}  // namespace ucx::test
