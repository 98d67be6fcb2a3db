// What a streambuf over remote memory sends, when, and what it makes of failures.
#include "ucx/remote_streambuf.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "support/remote_memory.hpp"
#include "support/stream_script.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr auto in = std::ios_base::in;
constexpr auto out = std::ios_base::out;
constexpr std::size_t block = 64 * 1024;
constexpr stream_options small_blocks{.buffer_size = block, .depth = 4};
const std::streambuf::pos_type nowhere{std::streamoff(-1)};

std::streamoff position(std::streambuf& buffer) { return buffer.pubseekoff(0, std::ios::cur); }

std::string read(std::streambuf& buffer, std::size_t count) {
  std::string bytes(count, '#');
  bytes.resize(
      static_cast<std::size_t>(buffer.sgetn(bytes.data(), static_cast<std::streamsize>(count))));
  return bytes;
}

std::streamsize write(std::streambuf& buffer, const std::string& bytes) {
  return buffer.sputn(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Returns what a read of `count` bytes throws; no error when it does not.
std::error_code error_of_read(std::streambuf& buffer, std::size_t count) {
  try {
    read(buffer, count);
  } catch (const ucx::error& failure) {
    return failure.code();
  }
  return {};
}

// Opening

TEST(RemoteStreambuf, RefusesWhatTheRegionDoesNotGrant) {
  remote_memory memory("read only", {}, access::read);
  std::error_code ec;
  remote_streambuf writer(memory.region, out, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_FALSE(writer.is_open());
  EXPECT_THROW(remote_streambuf(memory.region, in | out), ucx::error);
  remote_streambuf reader(memory.region, in, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(read(reader, 9), "read only");
}

TEST(RemoteStreambuf, RefusesModesThatARegionCanNotHave) {
  remote_memory memory("x");
  for (const auto mode : {out | std::ios_base::trunc, out | std::ios_base::app}) {
    std::error_code ec;
    remote_streambuf buffer(memory.region, mode, {}, ec);
    EXPECT_EQ(ec, errc::not_supported);
  }
  std::error_code ec;
  remote_streambuf neither(memory.region, std::ios_base::binary, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(RemoteStreambuf, RefusesAClosedRegion) {
  remote_memory memory("x");
  memory.region.close();
  std::error_code ec;
  remote_streambuf buffer(memory.region, in, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_FALSE(buffer.is_open());
}

TEST(RemoteStreambuf, OpensAtTheEndWhenToldAndSendsNothing) {
  remote_memory memory("0123456789");
  const auto before = memory.transfers();
  remote_streambuf buffer(memory.region, in | out | std::ios_base::ate);
  EXPECT_TRUE(buffer.is_open());
  EXPECT_EQ(position(buffer), 10);
  EXPECT_EQ(memory.transfers(), before);
}

TEST(RemoteStreambuf, OverNothingFailsInEveryOperation) {
  remote_streambuf buffer;
  EXPECT_FALSE(buffer.is_open());
  EXPECT_THROW(buffer.sgetc(), ucx::error);
  EXPECT_THROW(buffer.sungetc(), ucx::error);
  EXPECT_EQ(error_of_read(buffer, 1), errc::closed);
  EXPECT_EQ(buffer.sputc('x'), std::char_traits<char>::eof());
  EXPECT_EQ(write(buffer, "x"), 0);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.pubseekpos(0), nowhere);
  EXPECT_EQ(buffer.pubseekoff(0, std::ios::cur), nowhere);
  EXPECT_EQ(buffer.in_avail(), -1);
  EXPECT_EQ(buffer.error(), errc::closed);
  EXPECT_NO_THROW(buffer.close());
}

TEST(RemoteStreambuf, OfOneDirectionRefusesTheOther) {
  remote_memory memory("0123456789");
  remote_streambuf reader(memory.region, in);
  EXPECT_EQ(write(reader, "x"), 0);
  EXPECT_EQ(reader.error(), errc::permission_denied);
  EXPECT_EQ(reader.sputc('x'), std::char_traits<char>::eof());
  remote_streambuf writer(memory.region, out);
  EXPECT_EQ(error_of_read(writer, 1), errc::permission_denied);
  EXPECT_THROW(writer.sgetc(), ucx::error);
  EXPECT_EQ(writer.in_avail(), -1);
  EXPECT_EQ(memory.bytes, "0123456789");
}

// How much is read, and when

TEST(RemoteStreambuf, TakesOneSmallTransferForASmallReadSomewhere) {
  remote_memory memory(sample_text(8U << 20U, 1));
  remote_streambuf buffer(memory.region, in);
  for (const std::size_t offset : {5'000'000U, 77U, 3'123'456U, 8'000'000U}) {
    const auto before = memory.transfers();
    const auto bytes_before = memory.pair.network.bytes(call::am_send);
    buffer.pubseekpos(std::streamoff(offset));
    EXPECT_EQ(read(buffer, 8), memory.bytes.substr(offset, 8));
    memory.settle();
    EXPECT_EQ(memory.transfers() - before, 1U);
    EXPECT_LE(memory.pair.network.bytes(call::am_send) - bytes_before, 4096U);
  }
}

TEST(RemoteStreambuf, FetchesExactlyWhatALargeReadSomewhereAsksFor) {
  remote_memory memory(sample_text(1U << 20U, 2));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  const auto bytes_before = memory.pair.network.bytes(call::am_send);
  buffer.pubseekpos(100'000);
  EXPECT_EQ(read(buffer, block + 10), memory.bytes.substr(100'000, block + 10));
  memory.settle();
  EXPECT_EQ(memory.transfers() - before, 2U);
  EXPECT_EQ(memory.pair.network.bytes(call::am_send) - bytes_before, block + 10);
}

TEST(RemoteStreambuf, TakesOneTransferABlockInLargeReadsInSequence) {
  remote_memory memory(sample_text(64 * block, 3));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(read(buffer, block), memory.bytes.substr(i * block, block)) << i;
  }
  EXPECT_EQ(read(buffer, block), "");
  EXPECT_EQ(memory.transfers() - before, 64U);
}

TEST(RemoteStreambuf, GrowsItsTransfersWhenBytesAreTakenOneByOne) {
  remote_memory memory(sample_text(64 * block, 4));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const auto before = memory.transfers();
  std::string taken;
  for (int c = buffer.sbumpc(); c >= 0; c = buffer.sbumpc()) taken += static_cast<char>(c);
  EXPECT_EQ(taken, memory.bytes);
  EXPECT_LE(memory.transfers() - before, 64U + 10U);
}

/// Returns how long it takes to read everything in pieces of a block.
std::chrono::nanoseconds time_to_read(remote_memory& memory, std::size_t depth) {
  remote_streambuf buffer(memory.region, in, {.buffer_size = block, .depth = depth});
  const auto begin = memory.pair.network.now();
  std::string all;
  for (std::string piece = read(buffer, block); !piece.empty(); piece = read(buffer, block)) {
    all += piece;
  }
  EXPECT_EQ(all, memory.bytes);
  return memory.pair.network.now() - begin;
}

TEST(RemoteStreambuf, KeepsSeveralTransfersInFlightAcrossCalls) {
  simulated_pair_options options;
  options.link.latency = 1ms;
  remote_memory memory(sample_text(64 * block, 5), options);
  const auto one_by_one = time_to_read(memory, 1);
  const auto four_at_once = time_to_read(memory, 4);
  EXPECT_LT(four_at_once * 3, one_by_one);
}

TEST(RemoteStreambuf, ReadsNothingAheadWithDepthOne) {
  remote_memory memory(sample_text(16 * block, 6));
  remote_streambuf buffer(memory.region, in, {.buffer_size = block, .depth = 1});
  for (int i = 0; i < 3; ++i) read(buffer, block);
  const auto before = memory.transfers();
  memory.settle();
  EXPECT_EQ(memory.transfers(), before);
  read(buffer, block);
  EXPECT_EQ(memory.transfers(), before + 1);
}

TEST(RemoteStreambuf, ReachesTheEndWithoutATransferBehindIt) {
  for (const std::size_t size : {std::size_t{1}, block - 1, block, block + 1, 3 * block}) {
    remote_memory memory(sample_text(size, size));
    remote_streambuf buffer(memory.region, in, small_blocks);
    const auto bytes_before = memory.pair.network.bytes(call::am_send);
    EXPECT_EQ(read(buffer, size), memory.bytes);
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

TEST(RemoteStreambuf, ReadsShortAtTheEnd) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in);
  buffer.pubseekpos(7);
  EXPECT_EQ(read(buffer, 100), "789");
  EXPECT_EQ(position(buffer), 10);
  EXPECT_FALSE(buffer.error());
}

// Seeks

TEST(RemoteStreambuf, SeeksWithoutSending) {
  remote_memory memory(sample_text(4 * block, 7));
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  write(buffer, "pending");
  const auto before = memory.transfers();
  for (const std::streamoff target : {100'000, 0, 7, 250'000}) {
    EXPECT_EQ(std::streamoff(buffer.pubseekpos(target)), target);
    EXPECT_EQ(buffer.in_avail(), static_cast<std::streamsize>(4 * block) - target);
  }
  memory.settle();
  EXPECT_EQ(memory.transfers(), before);
}

TEST(RemoteStreambuf, KeepsWhatIsBufferedWhenASeekStaysWithin) {
  remote_memory memory(sample_text(4 * block, 8));
  remote_streambuf buffer(memory.region, in, small_blocks);
  EXPECT_EQ(read(buffer, 10), memory.bytes.substr(0, 10));
  const auto before = memory.transfers();
  for (const std::size_t offset : {4000U, 0U, 17U, 4088U}) {
    buffer.pubseekpos(std::streamoff(offset));
    EXPECT_EQ(read(buffer, 8), memory.bytes.substr(offset, 8));
  }
  EXPECT_EQ(memory.transfers(), before);
}

TEST(RemoteStreambuf, KeepsWhatIsInFlightWhenASeekLandsThere) {
  remote_memory memory(sample_text(16 * block, 9));
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (int i = 0; i < 4; ++i) read(buffer, block);  // three more blocks are on their way now
  const auto before = memory.transfers();
  buffer.pubseekpos(std::streamoff(6 * block + 5));
  EXPECT_EQ(read(buffer, 100), memory.bytes.substr(6 * block + 5, 100));
  const auto bytes_asked = memory.transfers() - before;
  EXPECT_LE(bytes_asked, 3U);  // further ahead, but not for what was read
  EXPECT_EQ(read(buffer, 2 * block), memory.bytes.substr(6 * block + 105, 2 * block));
}

TEST(RemoteStreambuf, StartsSmallAgainAfterASeekElsewhere) {
  remote_memory memory(sample_text(64 * block, 10));
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (int i = 0; i < 4; ++i) read(buffer, block);
  buffer.pubseekpos(std::streamoff(50 * block));
  const auto before = memory.transfers();
  EXPECT_EQ(read(buffer, 8), memory.bytes.substr(50 * block, 8));
  EXPECT_EQ(memory.transfers() - before, 1U);
  memory.settle();
}

TEST(RemoteStreambuf, DoesNotWaitAtASeekForWhatWasReadAhead) {
  simulated_pair_options options;
  options.link.bytes_per_second = 1e6;  // a block takes 65 ms
  remote_memory memory(sample_text(64 * block, 11), options);
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (int i = 0; i < 4; ++i) read(buffer, block);
  const auto begin = memory.pair.network.now();
  buffer.pubseekpos(5);
  EXPECT_EQ(memory.pair.network.now(), begin);
}

TEST(RemoteStreambuf, FailsASeekOutsideAndStaysWhereItIs) {
  constexpr auto furthest = std::numeric_limits<std::streamoff>::max();
  constexpr auto lowest = std::numeric_limits<std::streamoff>::min();
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in | out);
  EXPECT_EQ(read(buffer, 4), "0123");
  for (const std::streamoff offset : {std::streamoff(11), furthest, std::streamoff(-1), lowest}) {
    EXPECT_EQ(buffer.pubseekpos(offset), nowhere);
    EXPECT_EQ(buffer.error(), errc::out_of_range);
    EXPECT_EQ(position(buffer), 4);
  }
  for (const std::streamoff offset : {std::streamoff(7), furthest, std::streamoff(-5), lowest}) {
    EXPECT_EQ(buffer.pubseekoff(offset, std::ios::cur), nowhere);
  }
  for (const std::streamoff offset : {std::streamoff(1), furthest, std::streamoff(-11), lowest}) {
    EXPECT_EQ(buffer.pubseekoff(offset, std::ios::end), nowhere);
  }
  EXPECT_EQ(position(buffer), 4);
  EXPECT_EQ(read(buffer, 2), "45");
  EXPECT_FALSE(buffer.error());
  EXPECT_EQ(write(buffer, "x"), 1);
  EXPECT_EQ(buffer.pubseekoff(99, std::ios::beg), nowhere);
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes, "012345x789");
}

TEST(RemoteStreambuf, SeeksFromEverywhere) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in | out);
  EXPECT_EQ(std::streamoff(buffer.pubseekoff(0, std::ios::end)), 10);
  EXPECT_EQ(std::streamoff(buffer.pubseekoff(-3, std::ios::end)), 7);
  EXPECT_EQ(buffer.sgetc(), '7');
  EXPECT_EQ(std::streamoff(buffer.pubseekoff(-5, std::ios::cur)), 2);
  EXPECT_EQ(buffer.sgetc(), '2');
  EXPECT_EQ(std::streamoff(buffer.pubseekoff(5, std::ios::beg, in)), 5);
  EXPECT_EQ(buffer.sputc('x'), 'x');  // one position, whatever `which` says
  EXPECT_EQ(buffer.sgetc(), '6');
}

// Going back

TEST(RemoteStreambuf, GoesBackBeyondWhatItHas) {
  remote_memory memory(sample_text(8 * block, 12));
  remote_streambuf buffer(memory.region, in, small_blocks);
  const std::size_t start = 5 * block + 2;
  buffer.pubseekpos(std::streamoff(start));
  for (std::size_t back = 1; back <= 5000; ++back) {
    ASSERT_EQ(buffer.sungetc(), int(static_cast<unsigned char>(memory.bytes[start - back])));
  }
  EXPECT_LE(memory.transfers(), 8U);
  EXPECT_EQ(position(buffer), std::streamoff(start - 5000));
}

TEST(RemoteStreambuf, CanNotGoBackBeforeTheBeginning) {
  remote_memory memory("0123");
  remote_streambuf buffer(memory.region, in | out);
  EXPECT_EQ(buffer.sungetc(), std::char_traits<char>::eof());
  EXPECT_EQ(buffer.error(), errc::out_of_range);
  EXPECT_EQ(buffer.sputbackc('x'), std::char_traits<char>::eof());
  EXPECT_EQ(buffer.sbumpc(), '0');
}

TEST(RemoteStreambuf, PutsAnotherCharacterBackWithoutWritingIt) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in | out);
  EXPECT_EQ(read(buffer, 2), "01");
  EXPECT_EQ(buffer.sputbackc('Q'), 'Q');
  EXPECT_EQ(position(buffer), 1);
  EXPECT_EQ(read(buffer, 3), "Q23");
  buffer.pubseekpos(0);
  EXPECT_EQ(buffer.sputbackc('Q'), std::char_traits<char>::eof());
  EXPECT_EQ(read(buffer, 4), "0123");  // as a file: a seek brings back what is there
  buffer.pubseekpos(9);
  EXPECT_EQ(buffer.sputbackc('Q'), 'Q');
  EXPECT_EQ(buffer.sputc('x'), 'x');
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes, "01234567x9");
}

// Freshness

TEST(RemoteStreambuf, DropsWhatItReadAheadAtSync) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in);
  EXPECT_EQ(read(buffer, 2), "01");
  memory.bytes = "abcdefghij";
  EXPECT_EQ(buffer.sgetc(), '2');
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(position(buffer), 2);
  EXPECT_EQ(read(buffer, 2), "cd");
}

// Writing

TEST(RemoteStreambuf, SendsFullBlocksAndKeepsTheRest) {
  remote_memory memory(std::string(8 * block, '.'));
  const std::string text = sample_text(2 * block + 100, 13);
  remote_streambuf buffer(memory.region, out, small_blocks);
  const auto before = memory.transfers();
  for (const char c : text) ASSERT_NE(buffer.sputc(c), std::char_traits<char>::eof());
  EXPECT_EQ(memory.transfers() - before, 2U);
  memory.settle();
  EXPECT_EQ(memory.bytes.substr(0, 2 * block), text.substr(0, 2 * block));
  EXPECT_EQ(memory.bytes[2 * block], '.');
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes.substr(0, text.size()), text);
  EXPECT_EQ(memory.bytes[text.size()], '.');
  EXPECT_EQ(memory.transfers() - before, 3U);
}

TEST(RemoteStreambuf, WritesLargePiecesStraightAway) {
  remote_memory memory(std::string(8 * block, '.'));
  const std::string text = sample_text(4 * block + 100, 14);
  remote_streambuf buffer(memory.region, out, small_blocks);
  write(buffer, "head");
  const auto before = memory.transfers();
  EXPECT_EQ(write(buffer, text), std::streamsize(text.size()));
  EXPECT_EQ(memory.transfers() - before, 6U);  // the head, and five pieces
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes.substr(0, text.size() + 5), "head" + text + ".");
}

TEST(RemoteStreambuf, MakesVisibleOnlyByFlush) {
  simulated_pair_options options;
  options.link.latency = 10ms;
  remote_memory memory(std::string(100, '.'), options);
  remote_streambuf buffer(memory.region, out);
  write(buffer, "hello");
  memory.settle();
  EXPECT_EQ(memory.bytes.substr(0, 6), "......");
  const auto begin = memory.pair.network.now();
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes.substr(0, 6), "hello.");
  EXPECT_GE(memory.pair.network.now() - begin, 20ms);  // there and back
  const auto again = memory.transfers();
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.transfers(), again);
}

TEST(RemoteStreambuf, ContinuesWhatIsPendingAfterSeeksToAndFro) {
  remote_memory memory(std::string(100, '.'));
  remote_streambuf buffer(memory.region, in | out);
  const auto before = memory.transfers();
  write(buffer, "one");
  buffer.pubseekpos(50);
  buffer.pubseekpos(3);
  write(buffer, "two");
  EXPECT_EQ(memory.transfers(), before);
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.transfers(), before + 1);
  EXPECT_EQ(memory.bytes.substr(0, 7), "onetwo.");
}

TEST(RemoteStreambuf, WritesWhatFitsAndSaysNoSpace) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1}) {
    remote_memory memory(std::string(size, '.'));
    const std::string text = sample_text(size + 7, size);
    remote_streambuf buffer(memory.region, in | out, small_blocks);
    EXPECT_EQ(write(buffer, text), std::streamsize(size));
    EXPECT_EQ(buffer.error(), errc::no_space);
    EXPECT_EQ(position(buffer), std::streamoff(size));
    EXPECT_EQ(buffer.sputc('x'), std::char_traits<char>::eof());
    EXPECT_EQ(buffer.error(), errc::no_space);
    EXPECT_EQ(buffer.pubsync(), 0);
    EXPECT_FALSE(buffer.error());
    EXPECT_EQ(memory.bytes, text.substr(0, size));
    for (std::size_t i = 0; i < size; ++i) buffer.pubseekpos(0);
    std::size_t taken = 0;
    while (buffer.sputc('y') == 'y') ++taken;
    EXPECT_EQ(taken, size);
    EXPECT_EQ(buffer.error(), errc::no_space);
    EXPECT_EQ(buffer.pubsync(), 0);
    EXPECT_EQ(memory.bytes, std::string(size, 'y'));
  }
}

TEST(RemoteStreambuf, ReadsWhatItWrote) {
  for (const bool hardware : {false, true}) {
    remote_memory memory(std::string(4 * block, '.'),
                         hardware ? over_hardware() : simulated_pair_options());
    remote_streambuf buffer(memory.region, in | out, small_blocks);
    EXPECT_EQ(read(buffer, 10), "..........");
    buffer.pubseekpos(4);
    write(buffer, "new");
    buffer.pubseekpos(0);
    EXPECT_EQ(read(buffer, 10), "....new...");
    const std::string text = sample_text(2 * block, 15);
    const std::string dots(10, '.');
    buffer.pubseekpos(20);
    write(buffer, text);
    buffer.pubseekpos(10);
    EXPECT_TRUE(read(buffer, 20 + text.size()) == dots + text + dots);
  }
}

TEST(RemoteStreambuf, WritesOverWhatItWroteInOrder) {
  for (const bool hardware : {false, true}) {
    remote_memory memory(std::string(4 * block, '.'),
                         hardware ? over_hardware() : simulated_pair_options());
    memory.pair.network.faults().reorder(0.5);
    remote_streambuf buffer(memory.region, out, small_blocks);
    std::string expected = memory.bytes;
    for (std::size_t i = 0; i < 200; ++i) {
      const std::size_t offset = i * 7919 % (2 * block);
      const std::string text(i % 3 == 0 ? block + 5 : 1000, static_cast<char>('a' + i % 26));
      buffer.pubseekpos(std::streamoff(offset));
      ASSERT_EQ(write(buffer, text), std::streamsize(text.size()));
      expected.replace(offset, text.size(), text);
    }
    EXPECT_EQ(buffer.pubsync(), 0);
    EXPECT_EQ(memory.bytes, expected);
  }
}

// Failures

simulated_pair_options short_deadlines() {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1s;
  return options;
}

TEST(RemoteStreambuf, RestoresThePositionOfAFailedRead) {
  remote_memory memory(sample_text(8 * block, 16), short_deadlines());
  remote_streambuf buffer(memory.region, in, small_blocks);
  EXPECT_EQ(read(buffer, 100), memory.bytes.substr(0, 100));
  memory.pair.owner_process.stop();
  EXPECT_EQ(error_of_read(buffer, 3 * block), errc::timed_out);
  EXPECT_EQ(buffer.error(), errc::timed_out);
  EXPECT_EQ(position(buffer), 100);
  memory.pair.owner_process.resume();
  EXPECT_EQ(read(buffer, 3 * block), memory.bytes.substr(100, 3 * block));
  EXPECT_FALSE(buffer.error());
}

TEST(RemoteStreambuf, ThrowsFromUnderflowAndGoesOnAfterwards) {
  remote_memory memory(sample_text(block, 17), short_deadlines());
  remote_streambuf buffer(memory.region, in, small_blocks);
  memory.pair.owner_process.stop();
  EXPECT_THROW(buffer.sgetc(), ucx::error);
  EXPECT_THROW(buffer.sbumpc(), ucx::error);
  EXPECT_EQ(position(buffer), 0);
  memory.pair.owner_process.resume();
  EXPECT_EQ(buffer.sbumpc(), int(static_cast<unsigned char>(memory.bytes[0])));
}

TEST(RemoteStreambuf, DeliversWhatArrivedBeforeReadAheadFailed) {
  remote_memory memory(sample_text(8 * block, 18), short_deadlines());
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (std::size_t i = 0; i < 3; ++i) read(buffer, block);
  read(buffer, 10);  // and with it a block
  memory.pair.owner_process.kill();
  memory.settle();
  EXPECT_EQ(read(buffer, block - 10), memory.bytes.substr(3 * block + 10, block - 10));
  EXPECT_EQ(error_of_read(buffer, 4 * block), errc::connection_reset);
  EXPECT_EQ(position(buffer), std::streamoff(4 * block));
}

TEST(RemoteStreambuf, SaysWhatFailedWhere) {
  remote_memory memory("0123456789", short_deadlines());
  remote_streambuf buffer(memory.region, in);
  memory.pair.owner_process.stop();
  try {
    buffer.sgetc();
    FAIL() << "nothing was thrown";
  } catch (const std::ios_base::failure& failure) {
    EXPECT_EQ(failure.code(), std::errc::timed_out);
    EXPECT_NE(std::string(failure.what()).find("read of 10 bytes at offset 0"), std::string::npos)
        << failure.what();
  }
  memory.pair.owner_process.resume();
}

TEST(RemoteStreambuf, ReportsAFailedWriteOnceAndGoesBackToIt) {
  remote_memory memory(std::string(16 * block, '.'), short_deadlines());
  const std::string text = sample_text(16 * block, 19);
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  EXPECT_EQ(write(buffer, text.substr(0, 1000)), 1000);
  EXPECT_EQ(buffer.pubsync(), 0);
  memory.pair.owner_process.stop();
  std::size_t at = 1000;
  while (at < text.size()) {
    const auto taken = write(buffer, text.substr(at, 5000));
    if (taken < std::streamsize(std::min<std::size_t>(5000, text.size() - at))) break;
    at += static_cast<std::size_t>(taken);
  }
  if (at == text.size()) {
    EXPECT_EQ(buffer.pubsync(), -1);
  }
  EXPECT_EQ(buffer.error(), errc::timed_out);
  EXPECT_EQ(position(buffer), 1000);
  memory.pair.owner_process.resume();
  memory.settle();
  const auto retried = static_cast<std::size_t>(position(buffer));
  EXPECT_EQ(write(buffer, text.substr(retried)), std::streamsize(text.size() - retried));
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_FALSE(buffer.error());
  EXPECT_EQ(memory.bytes, text);
}

TEST(RemoteStreambuf, ReportsWhatTheOwnerRefusedAtFlush) {
  remote_memory memory(std::string(100, '.'));
  remote_streambuf buffer(memory.region, in | out);
  memory.exposed.close();
  EXPECT_EQ(write(buffer, "hello"), 5);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.error(), errc::revoked);
  EXPECT_EQ(position(buffer), 0);
  EXPECT_EQ(buffer.pubsync(), 0);  // reported once; nothing is pending any more
  EXPECT_EQ(error_of_read(buffer, 1), errc::revoked);
}

TEST(RemoteStreambuf, ReportsAFailedWriteAtTheNextReadOrSeek) {
  for (const bool by_seek : {true, false}) {
    simulated_pair_options options;
    options.link.socket_buffer = 1000;  // what the owner does not take stays here
    remote_memory memory(std::string(16 * block, '.'), options);
    remote_streambuf buffer(memory.region, in | out, small_blocks);
    memory.pair.owner_process.stop();
    std::string text = sample_text(block + 1, 20);
    for (const char c : text) ASSERT_NE(buffer.sputc(c), std::char_traits<char>::eof());
    memory.pair.owner_process.kill();
    memory.settle();
    memory.pair.reader.progress();
    if (by_seek) {
      EXPECT_EQ(buffer.pubseekpos(99), nowhere);
      EXPECT_EQ(buffer.error(), errc::connection_reset);
    } else {
      EXPECT_EQ(error_of_read(buffer, 1), errc::connection_reset);
    }
    EXPECT_EQ(position(buffer), 0);
    EXPECT_EQ(std::streamoff(buffer.pubseekpos(99)), 99);  // reported once
  }
}

TEST(RemoteStreambuf, OfARegionThatWasClosedSaysSo) {
  remote_memory memory(sample_text(2 * block, 21));
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  EXPECT_EQ(read(buffer, 10), memory.bytes.substr(0, 10));
  memory.region.close();
  EXPECT_EQ(read(buffer, 10), memory.bytes.substr(10, 10));  // it has them
  EXPECT_EQ(error_of_read(buffer, block), errc::closed);
  EXPECT_EQ(write(buffer, "x"), 1);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.error(), errc::closed);
}

TEST(RemoteStreambuf, OutlivesTheHandleAndTheConnectionItWasMadeFrom) {
  remote_memory memory("0123456789");
  std::optional<remote_streambuf> buffer;
  {
    remote_region handle = memory.region.share();
    buffer.emplace(handle, in | out);
    const remote_region moved = std::move(handle);
  }
  EXPECT_EQ(read(*buffer, 4), "0123");
}

// Moving, closing

TEST(RemoteStreambuf, MovesWithWhatItHolds) {
  remote_memory memory("0123456789");
  remote_streambuf first(memory.region, in | out);
  EXPECT_EQ(read(first, 3), "012");
  remote_streambuf second(std::move(first));
  EXPECT_FALSE(first.is_open());
  EXPECT_EQ(first.sputc('x'), std::char_traits<char>::eof());
  EXPECT_EQ(read(second, 2), "34");
  EXPECT_EQ(second.sputc('x'), 'x');
  remote_streambuf third;
  third = std::move(second);
  EXPECT_EQ(third.sputc('y'), 'y');
  EXPECT_EQ(position(third), 7);
  remote_streambuf fourth(memory.region, in);
  EXPECT_EQ(read(fourth, 1), "0");
  swap(third, fourth);
  EXPECT_EQ(read(third, 1), "1");
  EXPECT_EQ(fourth.pubsync(), 0);
  EXPECT_EQ(memory.bytes, "01234xy789");
}

TEST(RemoteStreambuf, ClosesWhatIsAssignedTo) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, out);
  write(buffer, "abc");
  buffer = remote_streambuf();
  EXPECT_EQ(memory.bytes, "abc3456789");
}

TEST(RemoteStreambuf, DrainsWhenItIsDestroyed) {
  remote_memory memory("0123456789");
  {
    remote_streambuf buffer(memory.region, out);
    write(buffer, "abc");
  }
  EXPECT_EQ(memory.bytes, "abc3456789");
}

TEST(RemoteStreambuf, ReportsTheLastFailureOnceAtClose) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in | out);
  write(buffer, "abc");
  memory.exposed.close();
  EXPECT_THROW(buffer.close(), ucx::error);
  EXPECT_EQ(buffer.error(), errc::revoked);
  EXPECT_FALSE(buffer.is_open());
  EXPECT_NO_THROW(buffer.close());
  EXPECT_EQ(buffer.sputc('x'), std::char_traits<char>::eof());
  EXPECT_EQ(buffer.error(), errc::closed);
  EXPECT_EQ(error_of_read(buffer, 1), errc::closed);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.pubseekpos(0), nowhere);
}

// Hardware, where a transfer that nobody wants any more can not be given up

TEST(RemoteStreambuf, LeavesAbandonedReadsBehindWhereTheyCanNotBeStopped) {
  remote_memory memory(sample_text(64 * block, 22), over_hardware());
  ASSERT_EQ(memory.region.way(), way::rma);
  memory.pair.network.faults().delay(call::get, 5ms, 0);
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t offset = i * 7919 * 13 % (60 * block);
    buffer.pubseekpos(std::streamoff(offset));
    for (std::size_t j = 0; j < 4; ++j) {
      ASSERT_EQ(read(buffer, 5000), memory.bytes.substr(offset + j * 5000, 5000));
    }
  }
}

}  // namespace
}  // namespace ucx::test
