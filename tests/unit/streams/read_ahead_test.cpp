// How much a stream reads, and when.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "engine/read_ahead.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ReadAhead, TakesOneSmallTransferForASmallReadSomewhere) {
  remote_memory memory(sample_text(8U << 20U, 1));
  remote_streambuf buffer(memory.region, in);
  for (const std::size_t offset : {5'000'000U, 77U, 3'123'456U, 8'000'000U}) {
    const auto before = memory.transfers();
    const auto bytes_before = memory.pair.network.bytes(call::am_send);
    buffer.pubseekpos(std::streamoff(offset));
    EXPECT_EQ(read(buffer, 8), memory.bytes.substr(offset, 8));
    memory.settle();
    EXPECT_EQ(memory.transfers() - before, 1U);
    EXPECT_LE(memory.pair.network.bytes(call::am_send) - bytes_before, 1024U);
  }
}

/// Seeks and reads 8 bytes; returns how many bytes came.
std::size_t bytes_for(remote_memory& memory, remote_streambuf& buffer, std::size_t offset) {
  const auto before = memory.pair.network.bytes(call::am_send);
  buffer.pubseekpos(std::streamoff(offset));
  EXPECT_EQ(read(buffer, 8), memory.bytes.substr(offset, 8));
  memory.settle();
  return memory.pair.network.bytes(call::am_send) - before;
}

TEST(ReadAhead, FetchesNoMoreThanScatteredReadsAskFor) {
  remote_memory memory(sample_text(8U << 20U, 1));
  remote_streambuf buffer(memory.region, in);
  for (const std::size_t offset : {5'000'000U, 77U, 3'123'456U}) {
    EXPECT_EQ(bytes_for(memory, buffer, offset), 1024U);
  }
  for (const std::size_t offset : {8'000'000U, 4'000'000U, 123U, 7'000'000U}) {
    EXPECT_EQ(bytes_for(memory, buffer, offset), 8U);
  }
  // One behind the other again: as from a beginning.
  std::string text = read(buffer, 8);
  text += read(buffer, 1000);
  EXPECT_TRUE(same(text, memory.bytes.substr(7'000'008, 1008)));
  EXPECT_EQ(bytes_for(memory, buffer, 2'000'000), 1024U);
}

TEST(ReadAhead, FetchesABlockAgainForScatteredReads) {
  remote_memory memory(sample_text(8U << 20U, 1));
  remote_streambuf buffer(memory.region, in);
  for (const std::size_t offset : {5'000'000U, 77U, 3'123'456U}) bytes_for(memory, buffer, offset);
  EXPECT_EQ(bytes_for(memory, buffer, 6'000'000), 8U);
  EXPECT_EQ(bytes_for(memory, buffer, 6'000'100), 1024U);
  EXPECT_EQ(bytes_for(memory, buffer, 6'000'600), 0U) << "it is there";
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(bytes_for(memory, buffer, 10'000 + i * 100'000), 1024U);
  }
}

TEST(ReadAhead, FetchesExactlyWhatALargeReadSomewhereAsksFor) {
  remote_memory memory(sample_text(1U << 20U, 2));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  const auto bytes_before = memory.pair.network.bytes(call::am_send);
  buffer.pubseekpos(100'000);
  EXPECT_TRUE(same(read(buffer, block + 10), memory.bytes.substr(100'000, block + 10)));
  memory.settle();
  EXPECT_EQ(memory.transfers() - before, 2U);
  EXPECT_EQ(memory.pair.network.bytes(call::am_send) - bytes_before, block + 10);
}

TEST(ReadAhead, TakesOneTransferABlockInLargeReadsInSequence) {
  remote_memory memory(sample_text(64 * block, 3));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(same(read(buffer, block), memory.bytes.substr(i * block, block))) << i;
  }
  EXPECT_EQ(read(buffer, block), "");
  EXPECT_EQ(memory.transfers() - before, 64U);
}

TEST(ReadAhead, GrowsItsTransfersWhenBytesAreTakenOneByOne) {
  remote_memory memory(sample_text(64 * block, 4));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  std::string taken;
  for (int c = buffer.sbumpc(); c >= 0; c = buffer.sbumpc()) taken += static_cast<char>(c);
  EXPECT_TRUE(same(taken, memory.bytes));
  EXPECT_LE(memory.transfers() - before, 64U + 10U);
}

/// Returns how long it takes to read everything in pieces of a block.
std::chrono::nanoseconds time_to_read(remote_memory& memory, std::size_t depth) {
  remote_streambuf buffer(memory.region, in, {.buffer_size = block, .queue_depth = depth});
  const auto begin = memory.pair.network.now();
  std::string all;
  for (std::string piece = read(buffer, block); !piece.empty(); piece = read(buffer, block)) {
    all += piece;
  }
  EXPECT_TRUE(same(all, memory.bytes));
  return memory.pair.network.now() - begin;
}

TEST(ReadAhead, KeepsSeveralTransfersInFlightAcrossCalls) {
  simulated_pair_options options;
  options.link.latency = 1ms;
  remote_memory memory(sample_text(64 * block, 5), options);
  const auto one_by_one = time_to_read(memory, 1);
  const auto four_at_once = time_to_read(memory, 4);
  EXPECT_LT(four_at_once * 3, one_by_one);
}

TEST(ReadAhead, ReadsNothingAheadWithDepthOne) {
  remote_memory memory(sample_text(16 * block, 6));
  remote_streambuf buffer(memory.region, in, {.buffer_size = block, .queue_depth = 1});
  for (int i = 0; i < 3; ++i) read(buffer, block);
  const auto before = memory.transfers();
  memory.settle();
  EXPECT_EQ(memory.transfers(), before);
  read(buffer, block);
  EXPECT_EQ(memory.transfers(), before + 1);
}

TEST(ReadAhead, ReachesTheEndWithoutATransferBehindIt) {
  for (const std::size_t size : {std::size_t{1}, block - 1, block, block + 1, 3 * block}) {
    remote_memory memory(sample_text(size, size));
    remote_streambuf buffer(memory.region, in, small_blocks);
    const auto bytes_before = memory.pair.network.bytes(call::am_send);
    EXPECT_TRUE(same(read(buffer, size), memory.bytes));
    const auto before = memory.transfers();
    EXPECT_EQ(buffer.sgetc(), std::char_traits<char>::eof());
    EXPECT_EQ(read(buffer, 10), "");
    EXPECT_EQ(buffer.in_avail(), 0);
    EXPECT_FALSE(buffer.error());
    memory.settle();
    EXPECT_EQ(memory.transfers(), before);
    EXPECT_EQ(memory.pair.network.bytes(call::am_send) - bytes_before, size);
  }
}

TEST(ReadAhead, ReadsShortAtTheEnd) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in);
  buffer.pubseekpos(7);
  EXPECT_EQ(read(buffer, 100), "789");
  EXPECT_EQ(position(buffer), 10);
  EXPECT_FALSE(buffer.error());
}

TEST(ReadAhead, DropsWhatItReadAheadAtSync) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in);
  EXPECT_EQ(read(buffer, 2), "01");
  memory.bytes = "abcdefghij";
  EXPECT_EQ(buffer.sgetc(), '2');
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(position(buffer), 2);
  EXPECT_EQ(read(buffer, 2), "cd");
}

TEST(ReadAhead, LeavesAbandonedReadsBehindWhereTheyCanNotBeStopped) {
  remote_memory memory(sample_text(64 * block, 22), over_hardware());
  ASSERT_EQ(memory.region.transfer_method(), transfer_method::rma);
  memory.pair.network.faults().delay(call::get, 5ms, 0);
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t offset = i * 7919 * 13 % (60 * block);
    buffer.pubseekpos(std::streamoff(offset));
    for (std::size_t j = 0; j < 4; ++j) {
      ASSERT_TRUE(same(read(buffer, 5000), memory.bytes.substr(offset + j * 5000, 5000)));
    }
  }
}

/// There is no memory to tell that a first read failed, whose memory it has still.
class source_without_memory final : public detail::byte_source {
 public:
  std::uint64_t size() const noexcept override { return 1U << 20U; }
  request start_read_at(std::uint64_t, std::span<std::byte> into) override {
    last = into;
    return {};
  }
  request start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                          const std::shared_ptr<const void>& keeper) override {
    if (std::exchange(kept, keeper)) return start_read_at(offset, into);
    throw std::bad_alloc();
  }
  request start_write_at(std::uint64_t, std::span<const std::byte>) override { return {}; }
  request start_flush() override { return {}; }
  bool abandons_reads_at_once() const noexcept override { return true; }
  std::optional<std::uint64_t> first_unconfirmed() const override { return {}; }
  void forget_writes(std::uint64_t) override {}
  std::chrono::steady_clock::time_point now() const noexcept override { return {}; }
  std::error_code status() const noexcept override { return {}; }
  std::string description() const override { return "a source without memory"; }

  std::shared_ptr<const void> kept;
  std::span<std::byte> last;
};

TEST(ReadAhead, UsesNoBlockAgainThatAReadWithoutARequestMayHave) {
  source_without_memory source;
  detail::byte_budget in_flight(64 * block);
  detail::block_pool pool(block, detail::read_ahead::first_unit, in_flight);
  detail::read_ahead reads(source, pool, in_flight, block, 1);
  reads.begin(0, {});
  EXPECT_THROW(reads.ask(0, {}, source.size()), std::bad_alloc);
  ASSERT_TRUE(source.kept);
  EXPECT_EQ(pool.allocated(), 0U);
  const std::shared_ptr<const void> first = source.kept;
  reads.drop();
  reads.begin(0, {});
  reads.ask(0, {}, source.size());
  EXPECT_NE(source.last.data(), first.get());
  EXPECT_EQ(pool.allocated(), detail::read_ahead::first_unit);
  EXPECT_EQ(source.kept.get(), source.last.data());
}

}  // namespace
}  // namespace ucx::test
