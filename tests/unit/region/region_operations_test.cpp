// What a handle of a peer's region can do beyond single reads and writes, over the simulation.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "connection/posted_operations.hpp"
#include "region/exposed/notification_queue.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "wire/range_list.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class RegionOperations : public testing::Test {
 protected:
  explicit RegionOperations(const simulated_pair_options& options = {},
                            access granted = access::read_write)
      : pair_(options),
        numbers_(1 << 17),
        exposed_(pair_.owner_context, std::as_writable_bytes(std::span(numbers_)), granted),
        connection_(pair_.connect()),
        region_(connection_, exposed_.descriptor()) {
    connection_.wait_connected();
  }

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(numbers_)); }
  std::uint64_t sent() const { return pair_.reader_process.count(call::am_send); }

  simulated_pair pair_;
  std::vector<std::uint64_t> numbers_;
  memory_region exposed_;
  endpoint connection_;
  remote_region region_;
};

TEST_F(RegionOperations, AtomicsDoWhatStdAtomicRefDoes) {
  numbers_[2] = 40;
  remote_atomic<std::uint64_t> number(region_, 16);
  EXPECT_EQ(number.load(), 40U);
  EXPECT_EQ(number.fetch_add(2), 40U);
  EXPECT_EQ(numbers_[2], 42U);
  EXPECT_EQ(number.exchange(0xf0), 42U);
  EXPECT_EQ(number.fetch_and(0x3c), 0xf0U);
  EXPECT_EQ(number.fetch_or(0x03), 0x30U);
  EXPECT_EQ(number.fetch_xor(0xff), 0x33U);
  EXPECT_EQ(numbers_[2], 0xccU);
  number.store(7);
  number.store_add(std::numeric_limits<std::uint64_t>::max());  // minus one
  EXPECT_EQ(numbers_[2], 6U);
  number.store_or(9);
  number.store_and(13);
  number.store_xor(1);
  EXPECT_EQ(numbers_[2], 12U);
  std::uint64_t expected = 11;
  EXPECT_FALSE(number.compare_exchange(expected, 100));
  EXPECT_EQ(expected, 12U);
  EXPECT_TRUE(number.compare_exchange(expected, 100));
  EXPECT_EQ(numbers_[2], 100U);
}

TEST_F(RegionOperations, StartedAtomicsDoWhatTheWaitingOnesDo) {
  numbers_[2] = 40;
  remote_atomic<std::uint64_t> number(region_, 16);
  std::uint64_t previous = 0;
  const auto start = [&](atomic_operation operation, std::uint64_t operand) {
    number.start(operation, operand, &previous).wait();
    return previous;
  };
  EXPECT_EQ(start(atomic_operation::load, 7), 40U);
  EXPECT_EQ(start(atomic_operation::add, 2), 40U);
  EXPECT_EQ(start(atomic_operation::store, 0xf0), 42U);
  EXPECT_EQ(start(atomic_operation::bit_and, 0x3c), 0xf0U);
  EXPECT_EQ(start(atomic_operation::bit_or, 0x03), 0x30U);
  EXPECT_EQ(start(atomic_operation::bit_xor, 0xff), 0x33U);
  number.start_compare_exchange(0xcd, 1, previous).wait();
  EXPECT_EQ(previous, 0xccU);
  EXPECT_EQ(numbers_[2], 0xccU);
  number.start_compare_exchange(0xcc, 1, previous).wait();
  EXPECT_EQ(previous, 0xccU);
  EXPECT_EQ(numbers_[2], 1U);
  number.start(atomic_operation::add, 4).wait();
  EXPECT_EQ(numbers_[2], 5U);
  EXPECT_EQ(previous, 0xccU);
}

TEST_F(RegionOperations, NarrowAtomicsTouchNothingBesideThem) {
  numbers_[0] = ~std::uint64_t{0};
  remote_atomic<std::int32_t> low(region_, 0);
  EXPECT_EQ(low.fetch_add(-4), -1);
  EXPECT_EQ(low.load(), -5);
  std::int32_t expected = -5;
  EXPECT_TRUE(low.compare_exchange(expected, 3));
  EXPECT_EQ(numbers_[0], 0xffffffff00000003U);
}

TEST_F(RegionOperations, AtomicsAreCheckedBeforeAnythingIsSent) {
  const std::uint64_t before = sent();
  std::error_code ec;
  remote_atomic<std::uint64_t>(region_, 4).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  remote_atomic<std::uint32_t>(region_, 2).store(1, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  remote_atomic<std::uint64_t>(region_, region_.size()).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  remote_atomic<std::uint64_t>(region_, ~std::uint64_t{7}).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  EXPECT_EQ(region_.start_atomic(0, {.width = 3}).error(), errc::invalid_argument);
  EXPECT_EQ(region_.start_atomic(0, {.width = 16}).error(), errc::invalid_argument);
  EXPECT_EQ(sent(), before);
}

TEST_F(RegionOperations, AtomicsThatAreNoneAreRefused) {
  numbers_[0] = 3;
  const std::uint64_t before = sent();
  std::uint64_t previous = 7;
  remote_atomic<std::uint64_t> number(region_, 0);
  // Nothing says what is expected.
  for (const auto operation :
       {atomic_operation::compare_exchange, atomic_operation(), static_cast<atomic_operation>(8),
        static_cast<atomic_operation>(255)}) {
    EXPECT_EQ(number.start(operation, 1, &previous).error(), errc::invalid_argument);
    EXPECT_EQ(number.start(operation, 1).error(), errc::invalid_argument);
  }
  const auto into = std::as_writable_bytes(std::span(&previous, 1));
  for (const auto operation : {atomic_operation(), static_cast<atomic_operation>(8)}) {
    EXPECT_EQ(region_.start_atomic(0, {.operation = operation}, into).error(),
              errc::invalid_argument);
  }
  for (const std::size_t size : {1U, 4U, 7U}) {
    EXPECT_EQ(region_.start_atomic(0, {}, into.first(size)).error(), errc::invalid_argument);
  }
  EXPECT_EQ(region_.start_atomic(0, {.width = 4}, into).error(), errc::invalid_argument);
  EXPECT_EQ(sent(), before);
  EXPECT_EQ(previous, 7U);
  EXPECT_EQ(numbers_[0], 3U);
}

TEST_F(RegionOperations, AtomicsOfARevokedRegionAreRefused) {
  exposed_.close();
  std::error_code ec;
  remote_atomic<std::uint64_t>(region_, 0).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(numbers_[0], 0U);
}

TEST_F(RegionOperations, AnAtomicWhoseAnswerIsLostIsNotRepeated) {
  remote_atomic<std::uint64_t> number(region_, 0);
  std::uint64_t previous = 0;
  pair_.owner_process.faults().fail(call::am_send, UCS_ERR_CONNECTION_RESET);
  request lost = number.start(atomic_operation::add, 1, &previous);
  std::error_code ec;
  lost.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(numbers_[0], 1U);
}

TEST_F(RegionOperations, BatchesOfSmallPiecesShareMessages) {
  fill_pattern(bytes());
  std::vector<std::vector<std::byte>> into(1000, std::vector<std::byte>(64));
  std::vector<read_piece> pieces;
  for (std::size_t i = 0; i < into.size(); ++i) pieces.push_back({i * 640 + 7, into[i]});
  const std::uint64_t before = sent();
  region_.read_batch(pieces);
  EXPECT_EQ(sent() - before, 1U);
  for (std::size_t i = 0; i < into.size(); ++i) {
    ASSERT_TRUE(holds_pattern(into[i], 0, i * 640 + 7)) << i;
  }
}

TEST_F(RegionOperations, BatchesOfEverySizeAreReadAndWritten) {
  for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 63, 1024, 2048, 20000}) {
    SCOPED_TRACE(size);
    fill_pattern(bytes(), 3);
    std::vector<std::vector<std::byte>> memory(30, pattern(size, 5));
    std::vector<write_piece> written;
    std::vector<read_piece> read;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      written.push_back({i * 30000, memory[i]});
      read.push_back({i * 30000, memory[i]});
    }
    region_.write_batch(written);
    region_.flush();
    EXPECT_EQ(region_.first_unconfirmed(), std::nullopt);
    for (std::vector<std::byte>& each : memory) std::fill(each.begin(), each.end(), std::byte{0});
    region_.read_batch(read);
    for (const std::vector<std::byte>& each : memory) EXPECT_TRUE(holds_pattern(each, 5));
    EXPECT_TRUE(holds_pattern(bytes().subspan(size, 30000 - size), 3, size));
  }
}

TEST_F(RegionOperations, ABatchWithOnePieceOutOfRangeMovesNothing) {
  fill_pattern(bytes(), 1);
  std::vector<std::byte> memory = pattern(100, 9);
  const std::uint64_t before = sent();
  std::error_code ec;
  region_.write_batch(std::array{write_piece{0, memory}, write_piece{region_.size() - 99, memory}},
                      {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.read_batch(std::array{read_piece{~std::uint64_t{0} - 50, memory}}, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.flush();
  EXPECT_EQ(sent(), before);
  EXPECT_TRUE(holds_pattern(bytes(), 1));
}

TEST_F(RegionOperations, ABatchOfNothingIsDone) {
  EXPECT_TRUE(region_.start_read_batch({}).done());
  EXPECT_FALSE(region_.start_write_batch(std::array{write_piece{}, write_piece{5, {}}}).error());
}

TEST_F(RegionOperations, ARefusedBatchSaysWhichPartFailed) {
  std::vector<std::byte> memory(100);
  exposed_.close();
  request read = region_.start_read_batch(std::array{read_piece{0, memory}});
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_NE(read.description().find("batch of reads: read of several pieces"), std::string::npos)
      << read.description();
  // As with every write, what the owner refuses is told by the flush.
  region_.write_batch(std::array{write_piece{0, memory}}, {}, ec);
  EXPECT_FALSE(ec);
  region_.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_F(RegionOperations, ACanceledBatchEndsAsOne) {
  std::vector<std::byte> memory(200'000, std::byte{1});
  pair_.owner_process.stop();
  std::vector<read_piece> pieces;
  for (std::size_t i = 0; i < 100; ++i) {
    pieces.push_back({i, std::span(memory).subspan(i * 2000, 2000)});
  }
  request read = region_.start_read_batch(pieces);
  read.cancel();
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.error(), errc::canceled);
  pair_.owner_process.resume();
  pair_.network.advance(10ms);
  EXPECT_TRUE(all_bytes_are(memory, std::byte{1}));
}

TEST_F(RegionOperations, ABatchEndsAtItsDeadline) {
  std::vector<std::byte> memory(100);
  pair_.owner_process.stop();
  request read = region_.start_read_batch(std::array{read_piece{0, memory}}, {.timeout = 50ms});
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  pair_.owner_process.resume();
}

TEST_F(RegionOperations, PostedOperationsAreCoveredByTheNextFlush) {
  fill_pattern(bytes(), 2);
  const std::vector<std::byte> from = pattern(100, 4);
  std::vector<std::byte> into(300);
  for (std::size_t i = 0; i < 3000; ++i) region_.post_write_at(i * 100, from);
  for (std::size_t i = 0; i < 3; ++i) {
    region_.post_read_at(400'000 + i * 100, std::span(into).subspan(i * 100, 100));
  }
  region_.flush();
  EXPECT_EQ(region_.first_unconfirmed(), std::nullopt);
  for (std::size_t i = 0; i < 3000; ++i) {
    ASSERT_TRUE(holds_pattern(bytes().subspan(i * 100, 100), 4)) << i;
  }
  EXPECT_TRUE(holds_pattern(into, 2, 400'000));
}

TEST_F(RegionOperations, FlushNamesTheFirstFailedOperation) {
  std::vector<std::byte> memory(64);
  exposed_.close();
  region_.post_read_at(128, memory);
  region_.post_read_at(256, memory);
  request flush = region_.start_flush();
  std::error_code ec;
  flush.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_NE(flush.description().find("read of 64 bytes at offset 128"), std::string::npos)
      << flush.description();
  region_.flush();  // told once
}

TEST_F(RegionOperations, PostedOperationsAreBounded) {
  pair_.owner_process.stop();
  std::vector<std::byte> memory(8);
  for (std::size_t i = 0; i < detail::posted_operations::most; ++i) {
    region_.post_read_at(0, memory);
  }
  std::error_code ec;
  region_.post_read_at(0, memory, {.timeout = 20ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  bool busy = false;
  pair_.reader.post([&] {
    region_.post_read_at(0, memory, {}, ec);
    busy = ec == errc::busy;
  });
  while (!busy && pair_.reader.progress()) {
  }
  EXPECT_TRUE(busy);
  pair_.owner_process.resume();
  region_.flush();
}

TEST_F(RegionOperations, AHandleThatGoesGivesItsPostedOperationsUp) {
  pair_.owner_process.stop();
  std::vector<std::byte> memory(100, std::byte{1});
  {
    remote_region other = region_.share();
    other.post_read_at(0, memory);
  }
  pair_.owner_process.resume();
  pair_.network.advance(10ms);
  EXPECT_TRUE(all_bytes_are(memory, std::byte{1}));
}

TEST_F(RegionOperations, AFlushOfTheWorkerCoversAllConnections) {
  const endpoint second = pair_.connect();
  remote_region other(second, exposed_.descriptor());
  const std::vector<std::byte> from = pattern(1000);
  request writes[] = {region_.start_write_at(0, from), other.start_write_at(5000, from)};
  pair_.reader.flush();
  EXPECT_TRUE(holds_pattern(bytes().first(1000)));
  EXPECT_TRUE(holds_pattern(bytes().subspan(5000, 1000)));
}

TEST_F(RegionOperations, WhatIsBehindAFenceWaitsForWhatWasBefore) {
  const std::vector<std::byte> from = pattern(3 << 20U, 6);
  std::vector<std::uint64_t> large(1 << 20U);
  memory_region much(pair_.owner_context, std::as_writable_bytes(std::span(large)),
                     access::read_write);
  remote_region target(connection_, much.descriptor());
  std::vector<std::byte> into(8);
  request write = target.start_write_at(0, std::span(from).first(3 << 20U));
  connection_.fence();
  const std::uint64_t before = sent();
  request read = target.start_read_at((3 << 20U) - 8, into);
  EXPECT_EQ(sent(), before) << "the read has to wait for the write's confirmation";
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 6, (3 << 20U) - 8));
  EXPECT_TRUE(write.done());
  EXPECT_EQ(target.first_unconfirmed(), std::nullopt);
}

TEST_F(RegionOperations, AFenceWithNothingBeforeItCostsNothing) {
  connection_.fence();
  pair_.reader.fence();
  const std::uint64_t before = sent();
  std::vector<std::byte> into(8);
  request read = region_.start_read_at(0, into);
  EXPECT_EQ(sent(), before + 1);
  read.wait();
}

// Notifications.

TEST_F(RegionOperations, ANotificationComesBehindTheData) {
  const std::vector<std::byte> from = pattern(200'000, 8);
  std::vector<std::uint64_t> heard;
  bool in_place = true;
  exposed_.on_notify([&](const notification& said) {
    heard.push_back(said.value);
    in_place = in_place && holds_pattern(bytes().first(from.size()), 8);
    EXPECT_NE(said.connection, 0U);
  });
  request write = region_.start_write_at(0, from);
  request told = region_.start_notify(77);
  told.wait();
  region_.notify(78);
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{77, 78}));
  EXPECT_TRUE(in_place);
}

TEST_F(RegionOperations, NobodyIsNotifiedOfAWriteThatFailed) {
  bool heard = false;
  exposed_.on_notify([&](const notification&) { heard = true; });
  // The owner refuses the write, not the notification: the generation is another one's.
  pair_.owner_process.stop();
  const std::vector<std::byte> from(100);
  request write = region_.start_write_at(0, from);
  request told = region_.start_notify(1, {.timeout = 100ms});
  connection_.cancel_all();
  std::error_code ec;
  told.wait(ec);
  EXPECT_EQ(ec, errc::canceled);
  pair_.owner_process.resume();
  pair_.network.advance(100ms);
  EXPECT_FALSE(heard);
}

TEST_F(RegionOperations, AnOwnerWaitsForNotifications) {
  notification said;
  request waited = exposed_.start_wait_notify(pair_.owner, said);
  EXPECT_FALSE(exposed_.take_notification());
  region_.notify(5);
  region_.notify(6);
  waited.wait();
  EXPECT_EQ(said.value, 5U);
  EXPECT_EQ(exposed_.wait_notify(pair_.owner).value, 6U);
  std::error_code ec;
  exposed_.wait_notify(pair_.owner, {.timeout = 5ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  region_.notify(7);
  const std::optional<notification> taken = exposed_.take_notification();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->value, 7U);
}

/// The wait's worker makes no round between the notification and the wait's end.
TEST_F(RegionOperations, AWaitThatIsServedAndGivenUpHasWhatWasSaid) {
  std::optional<worker> other(pair_.owner_context);
  notification said;
  request waited = exposed_.start_wait_notify(*other, said);
  region_.notify(5);
  EXPECT_FALSE(waited.done());
  waited.cancel();
  EXPECT_TRUE(waited.done());
  EXPECT_FALSE(waited.error());
  EXPECT_EQ(said.value, 5U);
  {
    notification brief;
    const request dropped = exposed_.start_wait_notify(*other, brief);
    region_.notify(6);
  }
  other->progress();  // the two that are over are on their way still
  request next = exposed_.start_wait_notify(*other, said);
  other->progress();
  EXPECT_FALSE(next.done());
  region_.notify(7);
  other.reset();  // the request keeps it
  next.wait();
  EXPECT_EQ(said.value, 7U);
}

TEST_F(RegionOperations, AWaitForANotificationEndsWithItsRegion) {
  notification said;
  request waited = exposed_.start_wait_notify(pair_.owner, said);
  exposed_.close();
  std::error_code ec;
  waited.wait(ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(exposed_.start_wait_notify(pair_.owner, said).error(), errc::closed);
  exposed_.on_notify({}, ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST_F(RegionOperations, AnUnheardOwnerIsBusyAtLast) {
  for (std::size_t i = 0; i < detail::notification_queue::most; ++i) region_.notify(i);
  std::error_code ec;
  region_.notify(0, {}, ec);
  EXPECT_EQ(ec, errc::busy);
  // Who handles them late gets them all, in order.
  std::vector<std::uint64_t> heard;
  exposed_.on_notify([&](const notification& one) { heard.push_back(one.value); });
  pair_.network.run_until([&] { return heard.size() == detail::notification_queue::most; });
  ASSERT_EQ(heard.size(), detail::notification_queue::most);
  EXPECT_EQ(heard.front(), 0U);
  EXPECT_EQ(heard.back(), heard.size() - 1);
  region_.notify(3);
}

class ReadOnlyRegion : public RegionOperations {
 protected:
  ReadOnlyRegion() : RegionOperations({}, access::read) {}
};

TEST_F(ReadOnlyRegion, LetsAtomicsLoadAndNothingElse) {
  numbers_[0] = 4;
  remote_atomic<std::uint64_t> number(region_, 0);
  EXPECT_EQ(number.load(), 4U);
  std::error_code ec;
  number.store(1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  number.fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  region_.notify(1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  region_.write_batch(std::array{write_piece{0, std::as_bytes(std::span("x"))}}, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_EQ(numbers_[0], 4U);
}

class WriteOnlyRegion : public RegionOperations {
 protected:
  WriteOnlyRegion() : RegionOperations({}, access::write) {}
};

TEST_F(WriteOnlyRegion, TellsNothingOfWhatWasThere) {
  numbers_[0] = 4;
  remote_atomic<std::uint64_t> number(region_, 0);
  number.store_add(3);
  EXPECT_EQ(numbers_[0], 7U);
  std::error_code ec;
  EXPECT_EQ(number.fetch_add(1, {}, ec), 0U);
  EXPECT_EQ(ec, errc::permission_denied);
  number.load({}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

}  // namespace
}  // namespace ucx::test
