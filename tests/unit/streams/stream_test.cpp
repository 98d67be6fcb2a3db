// What a program that uses std::istream and std::ostream sees of remote memory.
#include "ucx/stream.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ios>
#include <istream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

simulated_pair_options short_timeout() {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1s;
  return options;
}

/// Code that has never heard of remote memory.
int sum_of(std::istream& numbers) {
  int sum = 0;
  for (int number = 0; numbers >> number;) sum += number;
  return sum;
}

TEST(Istream, IsAnOrdinaryIstream) {
  remote_memory memory("1 2 3\n40 50\n");
  ucx::istream in(memory.region);
  EXPECT_EQ(sum_of(in), 96);
  EXPECT_TRUE(in.eof());
  EXPECT_FALSE(in.bad());
  EXPECT_FALSE(in.error());
  in.clear();
  in.seekg(6);
  std::string line;
  EXPECT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "40 50");
  EXPECT_EQ(in.rdbuf(), static_cast<std::ios&>(in).rdbuf());
}

TEST(Ostream, WritesInPlaceAndKeepsTheRest) {
  remote_memory memory("..........");
  ucx::ostream out(memory.region);
  out << "n=" << 42 << std::flush;
  EXPECT_TRUE(out.good());
  EXPECT_EQ(memory.bytes, "n=42......");
  EXPECT_EQ(std::streamoff(out.tellp()), 4);
}

TEST(Iostream, HasOnePosition) {
  remote_memory memory("0123456789");
  ucx::iostream both(memory.region);
  char c = 0;
  both.get(c);
  both.put('x');
  EXPECT_EQ(std::streamoff(both.tellg()), 2);
  EXPECT_EQ(std::streamoff(both.tellp()), 2);
  both.get(c);
  EXPECT_EQ(c, '2');
  both.seekp(0);
  std::string all;
  both >> all;
  EXPECT_EQ(all, "0x23456789");
}

TEST(Istream, ShowsBadbitAndNeverEofbitWhenATransferFails) {
  remote_memory memory("some words to read", short_timeout());
  const auto failing = [&](auto&& use) {
    ucx::istream in(memory.region);
    memory.pair.owner_process.stop();
    use(in);
    memory.pair.owner_process.resume();
    EXPECT_TRUE(in.bad());
    EXPECT_FALSE(in.eof());
    EXPECT_EQ(in.error(), errc::timed_out);
  };
  std::string text(10, '#');
  failing([](std::istream& in) { in.get(); });
  failing([](std::istream& in) { in.peek(); });
  failing([&](std::istream& in) { in >> text; });
  failing([&](std::istream& in) { std::getline(in, text); });
  failing([&](std::istream& in) { in.getline(text.data(), 5); });
  failing([](std::istream& in) { in.ignore(3); });
  failing([&](std::istream& in) { in.read(text.data(), 4); });
  failing([&](std::istream& in) { in.readsome(text.data(), 4); });
  failing([](std::istream& in) {
    int number = 0;
    in >> number;
  });
  failing([](std::istream& in) {
    in.seekg(5);
    in.unget();
  });
}

TEST(Istream, ReadsAgainAfterClear) {
  remote_memory memory(sample_text(5000, 1), short_timeout());
  ucx::istream in(memory.region, {.buffer_size = 1000});
  std::string first(10, '#');
  in.read(first.data(), 10);
  memory.pair.owner_process.stop();
  std::string bytes(3000, '#');
  in.read(bytes.data(), 3000);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.gcount(), 0);
  memory.pair.owner_process.resume();
  in.clear();
  EXPECT_EQ(std::streamoff(in.tellg()), 10);
  in.read(bytes.data(), 3000);
  EXPECT_TRUE(in.good());
  EXPECT_TRUE(bytes == memory.bytes.substr(10, 3000));
  EXPECT_FALSE(in.error());
}

TEST(Istream, ThrowsOurErrorWhereExceptionsAreWanted) {
  remote_memory memory("0123456789", short_timeout());
  ucx::istream in(memory.region);
  in.exceptions(std::ios::badbit);
  memory.pair.owner_process.stop();
  try {
    in.get();
    FAIL() << "nothing was thrown";
  } catch (const std::ios_base::failure& failure) {
    EXPECT_EQ(failure.code(), errc::timed_out);
    EXPECT_NE(dynamic_cast<const ucx::error*>(&failure), nullptr);
  }
  memory.pair.owner_process.resume();
}

TEST(Ostream, SurvivesAFailureInsideUnitbuf) {
  remote_memory memory("0123456789", short_timeout());
  ucx::ostream out(memory.region);
  out << std::unitbuf;
  memory.pair.owner_process.stop();
  EXPECT_NO_THROW(out << "abc");  // its sentry flushes, and may not throw
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::timed_out);
  memory.pair.owner_process.resume();
  memory.settle();
  out.clear();
  EXPECT_EQ(std::streamoff(out.tellp()), 0);
  out << "xyz";
  EXPECT_TRUE(out.good());
  EXPECT_EQ(memory.bytes, "xyz3456789");
}

TEST(Ostream, GoesOnAfterClearFromWhatIsNotKnownToBeVisible) {
  remote_memory memory(std::string(10'000, '.'), short_timeout());
  const std::string text = sample_text(10'000, 2);
  ucx::ostream out(memory.region, {.buffer_size = 1000});
  out.write(text.data(), 4000).flush();
  ASSERT_TRUE(out.good());
  memory.pair.owner_process.stop();
  out.write(text.data() + 4000, 3000).flush();
  EXPECT_TRUE(out.bad());
  memory.pair.owner_process.resume();
  memory.settle();
  out.clear();
  const auto at = static_cast<std::size_t>(std::streamoff(out.tellp()));
  EXPECT_EQ(at, 4000U);
  out.write(text.data() + at, static_cast<std::streamsize>(text.size() - at)).flush();
  EXPECT_TRUE(out.good());
  EXPECT_TRUE(memory.bytes == text);
}

TEST(Ostream, TakesWhatFitsAndShowsNoSpace) {
  remote_memory memory("0123456789");
  ucx::ostream out(memory.region);
  out.seekp(6);
  out << "abcdefgh";
  EXPECT_TRUE(out.bad());
  EXPECT_FALSE(out.eof());
  EXPECT_EQ(out.error(), errc::no_space);
  EXPECT_EQ(out.error(), std::errc::no_space_on_device);
  out.clear();
  EXPECT_EQ(std::streamoff(out.tellp()), 10);
  out.flush();
  EXPECT_TRUE(out.good());
  EXPECT_EQ(memory.bytes, "012345abcd");
}

TEST(Ostream, CopiesFromAnotherStreamsBuffer) {
  const std::string text = sample_text(100'000, 3);
  remote_memory source(text);
  remote_memory target(std::string(text.size(), '.'));
  ucx::istream in(source.region, {.buffer_size = 5000});
  ucx::ostream out(target.region, {.buffer_size = 3000});
  out << in.rdbuf();
  EXPECT_TRUE(in.good());
  EXPECT_TRUE(out.good());
  out.flush();
  EXPECT_TRUE(target.bytes == text);
}

TEST(Ostream, CopyingFromAFailingSourceLeavesTheCauseThere) {
  remote_memory memory(sample_text(5000, 4), short_timeout());
  ucx::istream in(memory.region, {.buffer_size = 1000});
  std::ostringstream out;
  memory.pair.owner_process.stop();
  out << in.rdbuf();
  EXPECT_TRUE(out.fail());
  EXPECT_TRUE(in.good());  // as with std
  EXPECT_EQ(in.error(), errc::timed_out);
  memory.pair.owner_process.resume();
}

TEST(Streams, ThatAreRefusedThrowOrAreEmpty) {
  remote_memory memory("0123", {}, access::read);
  EXPECT_THROW(ucx::ostream(memory.region), ucx::error);
  EXPECT_THROW(ucx::iostream(memory.region), ucx::error);
  std::error_code ec;
  ucx::ostream out(memory.region, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_EQ(ec, std::errc::permission_denied);
  EXPECT_TRUE(out.bad());
  EXPECT_FALSE(out.is_open());
  ucx::iostream both(memory.region, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_TRUE(both.bad());
  ucx::istream in(memory.region, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_TRUE(in.good());
  memory.region.close();
  ucx::istream closed(memory.region, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_TRUE(closed.bad());
}

TEST(Streams, MoveAndSwapWhileTheyAreOpen) {
  remote_memory memory("0123456789");
  ucx::istream first(memory.region);
  EXPECT_EQ(first.get(), '0');
  ucx::istream second(std::move(first));
  EXPECT_EQ(second.get(), '1');
  EXPECT_FALSE(first.is_open());
  ucx::istream third(memory.region);
  third.setstate(std::ios::failbit);
  swap(second, third);
  EXPECT_TRUE(second.fail());
  EXPECT_EQ(third.get(), '2');
  second = std::move(third);
  EXPECT_TRUE(second.good());
  EXPECT_EQ(second.get(), '3');
  EXPECT_EQ(static_cast<std::ios&>(second).rdbuf(), second.rdbuf());

  ucx::ostream out(memory.region);
  out << 'a';
  ucx::ostream taken(std::move(out));
  taken << 'b';
  ucx::ostream other(memory.region);
  swap(taken, other);
  taken = std::move(other);
  taken << 'c' << std::flush;
  EXPECT_EQ(memory.bytes, "abc3456789");
  out << 'z';  // moved from
  EXPECT_TRUE(out.bad());

  ucx::iostream both(memory.region);
  EXPECT_EQ(both.get(), 'a');
  ucx::iostream moved(std::move(both));
  moved << 'B';
  ucx::iostream last(memory.region);
  swap(moved, last);
  moved = std::move(last);
  EXPECT_EQ(moved.get(), 'c');
  moved.flush();
  EXPECT_EQ(memory.bytes, "aBc3456789");
}

TEST(Streams, CloseFlushesAndShowsFailbitForAnError) {
  remote_memory memory("0123456789");
  ucx::ostream out(memory.region);
  out << "abc";
  out.close();
  EXPECT_TRUE(out.good());
  EXPECT_EQ(memory.bytes, "abc3456789");
  out << "d";
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::closed);

  ucx::iostream both(memory.region);
  both << "xyz";
  memory.exposed.close();
  both.close();
  EXPECT_TRUE(both.fail());
  EXPECT_FALSE(both.bad());
  EXPECT_EQ(both.error(), errc::revoked);
  both.clear();
  both.close();
  EXPECT_TRUE(both.good());

  ucx::istream in(memory.region);
  in.close();
  EXPECT_TRUE(in.good());
  EXPECT_EQ(in.get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::closed);
}

TEST(Streams, DrainWhenTheyAreDestroyed) {
  remote_memory memory("0123456789");
  ucx::ostream(memory.region) << "abc";
  EXPECT_EQ(memory.bytes, "abc3456789");
}

TEST(Streams, AgreeAfterFlushHereAndSyncThere) {
  remote_memory memory("0123456789");
  ucx::istream in(memory.region);
  ucx::ostream out(memory.region);
  EXPECT_EQ(in.get(), '0');
  out << "abc" << std::flush;
  EXPECT_EQ(in.sync(), 0);
  EXPECT_EQ(in.get(), 'b');
}

TEST(Streams, OnlyFlushAndEndlCostARoundTripOfWrites) {
  simulated_pair_options options;
  options.link.latency = 10ms;
  remote_memory memory(std::string(100, '.'), options);
  ucx::ostream out(memory.region);
  const auto begin = memory.pair.network.now();
  out << "a line\n";
  EXPECT_LT(memory.pair.network.now() - begin, 1ms);
  out << "another" << std::endl;
  EXPECT_GE(memory.pair.network.now() - begin, 20ms);
  EXPECT_EQ(memory.bytes.substr(0, 15), "a line\nanother\n");
}

TEST(Istream, ReportsWhatIsLeftAsAFileDoes) {
  remote_memory memory("0123456789");
  ucx::istream in(memory.region);
  EXPECT_EQ(in.rdbuf()->in_avail(), 10);
  in.seekg(4);
  std::string bytes(20, '#');
  EXPECT_EQ(in.readsome(bytes.data(), 20), 6);
  EXPECT_EQ(bytes.substr(0, 7), "456789#");
  EXPECT_EQ(in.readsome(bytes.data(), 20), 0);
  EXPECT_TRUE(in.good());
}

}  // namespace
}  // namespace ucx::test
