// What a streambuf over remote memory allows, and where it stands.
#include <gtest/gtest.h>

#include <cstddef>
#include <ios>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

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
  // At its end, as a file that is open for writing; what is unsent stays.
  EXPECT_EQ(write(writer, "01"), 2);
  EXPECT_EQ(read(writer, 1), "");
  EXPECT_EQ(writer.error(), errc::permission_denied);
  EXPECT_EQ(writer.sgetc(), std::char_traits<char>::eof());
  EXPECT_EQ(writer.sungetc(), std::char_traits<char>::eof());
  EXPECT_EQ(writer.in_avail(), -1);
  EXPECT_EQ(write(writer, "2"), 1);
  writer.close();
  EXPECT_EQ(memory.bytes, "0123456789");
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
  for (const std::size_t offset : {1000U, 0U, 17U, 1016U}) {
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
  EXPECT_TRUE(same(read(buffer, 100), memory.bytes.substr(6 * block + 5, 100)));
  const auto bytes_asked = memory.transfers() - before;
  EXPECT_LE(bytes_asked, 3U);  // further ahead, but not for what was read
  EXPECT_TRUE(same(read(buffer, 2 * block), memory.bytes.substr(6 * block + 105, 2 * block)));
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

TEST(RemoteStreambuf, TellsInWordsWhatFailed) {
  remote_memory memory("0123456789");
  remote_streambuf buffer(memory.region, in | out);
  EXPECT_EQ(buffer.error_message(), "");
  EXPECT_EQ(buffer.pubseekpos(11), nowhere);
  EXPECT_NE(buffer.error_message().find(memory.region.description()), std::string::npos)
      << buffer.error_message();
  EXPECT_EQ(read(buffer, 1), "0");
  EXPECT_EQ(buffer.error_message(), "");
  EXPECT_NE(remote_streambuf().error_message(), "");
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
  EXPECT_LE(memory.transfers(), 16U);
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

}  // namespace
}  // namespace ucx::test
