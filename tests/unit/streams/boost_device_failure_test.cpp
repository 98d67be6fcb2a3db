// What Boost's parts show of a device that fails: nothing is lost unsaid, and nothing is written to
// where it does not belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/iostreams/close.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filter/counter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/stream.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <random>
#include <sstream>
#include <string>
#include <system_error>

#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/boost_device.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

namespace io = boost::iostreams;
using namespace std::chrono_literals;
using std::ios;
using testing::HasSubstr;

simulated_pair_options short_deadlines() {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 200ms;
  return options;
}

/// Returns what `call` throws; no error when it does not.
template <class Call>
std::error_code error_of(Call&& call) {
  try {
    call();
  } catch (const ucx::error& failed) {
    return failed.code();
  }
  return {};
}

// ---- The end of a region

TEST(BoostDeviceFailure, TakesWhatFitsAndSaysThatThereIsNoSpace) {
  remote_memory memory("....");
  remote_sink device(memory.region);
  EXPECT_EQ(error_of([&] { device.write("abcdef", 6); }), errc::no_space);
  EXPECT_EQ(device.error(), errc::no_space);
  EXPECT_THAT(device.error_message(), HasSubstr(memory.region.description()));
  EXPECT_EQ(error_of([&] { device.write("g", 1); }), errc::no_space);
  EXPECT_EQ(error_of([&] { device.flush(); }), errc::no_space);
  EXPECT_EQ(memory.bytes, "abcd");
  EXPECT_EQ(std::streamoff(device.seek(1, ios::beg)), 1);
  EXPECT_EQ(device.write("X", 1), 1);
  device.close();
  EXPECT_EQ(memory.bytes, "aXcd");
}

TEST(BoostDeviceFailure, ShowsAStreamThatThereIsNoSpace) {
  remote_memory memory("....");
  const remote_sink device(memory.region);
  io::stream<remote_sink> out(device);
  out << "abcdef";
  EXPECT_TRUE(out.good()) << "it is Boost's yet";
  out.flush();
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(device.error(), errc::no_space);
  EXPECT_EQ(error_of([&] { out.close(); }), errc::no_space);
  EXPECT_EQ(memory.bytes, "abcd");
}

TEST(BoostDeviceFailure, EndsACopyThatDoesNotFit) {
  remote_memory memory("....");
  const std::string text = sample_text(20'000, 3);
  EXPECT_EQ(error_of([&] {
              io::copy(io::array_source(text.data(), text.size()), remote_sink(memory.region));
            }),
            errc::no_space);
  EXPECT_EQ(memory.bytes, text.substr(0, 4));
}

TEST(BoostDeviceFailure, ReachesTheCloseOfAChain) {
  remote_memory memory(std::string(10, '.'));
  const remote_sink device(memory.region);
  io::filtering_ostream out;
  out.push(io::gzip_compressor());
  out.push(device);
  out << sample_text(100, 4);
  EXPECT_EQ(error_of([&] { io::close(out); }), errc::no_space);
  EXPECT_FALSE(device.is_open());
}

// ---- Reading

TEST(BoostDeviceFailure, ShowsBadbitAndNotTheEnd) {
  remote_memory memory(sample_text(3 * block, 1), short_deadlines());
  const remote_source device(memory.region, small_blocks);
  io::stream<remote_source> in(device);
  EXPECT_NE(in.get(), EOF);
  memory.pair.owner_process.stop();
  std::string line;
  in.seekg(2 * block);
  std::getline(in, line);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(device.error(), errc::timed_out);
  EXPECT_THAT(device.error_message(), HasSubstr(memory.region.description()));
  in.clear();
  in.exceptions(ios::badbit);
  EXPECT_EQ(error_of([&] { in.seekg(2 * block).get(); }), errc::timed_out);
  memory.pair.owner_process.resume();
  memory.settle();
  in.clear();
  in.seekg(2 * block);
  EXPECT_EQ(in.get(), static_cast<unsigned char>(memory.bytes[2 * block]));
  EXPECT_FALSE(device.error());
}

TEST(BoostDeviceFailure, ThrowsOutOfACopy) {
  remote_memory memory(sample_text(3 * block, 2), short_deadlines());
  memory.pair.owner_process.stop();
  std::ostringstream into;
  EXPECT_EQ(error_of([&] { io::copy(remote_source(memory.region), into); }), errc::timed_out);
  memory.pair.owner_process.resume();
}

// ---- Seeking

TEST(BoostDeviceFailure, RefusesASeekOutsideAndStays) {
  remote_memory memory("0123456789");
  io::stream<remote_device> stream(memory.region);
  EXPECT_EQ(stream.get(), '0');
  for (const std::streamoff outside : {-1, 11}) {
    stream.seekg(outside);
    EXPECT_TRUE(stream.bad());
    EXPECT_EQ(stream->error(), errc::out_of_range);
    EXPECT_THAT(stream->error_message(), HasSubstr("seeking"));
    stream.clear();
  }
  remote_source device(memory.region);
  device.seek(3, ios::beg);
  EXPECT_EQ(error_of([&] { device.seek(-4, ios::cur); }), errc::out_of_range);
  char c = '#';
  EXPECT_EQ(device.read(&c, 1), 1);
  EXPECT_EQ(c, '3');
}

// ---- Writes that fail behind Boost's back

/// A seek of Boost's flushes, and ignores what came of it. (What a seek throws passes through seekp
/// and tellp of libstdc++.)
class BoostSeek : public testing::TestWithParam<bool> {};

TEST_P(BoostSeek, TellsOfTheFlushThatFailedInIt) {
  remote_memory memory("..........");
  io::stream<remote_sink> out(memory.region);
  out << "lost";
  memory.exposed.close();
  const auto seek = [&] {
    return GetParam() ? std::streamoff(out.tellp()) : std::streamoff(out.seekp(0).tellp());
  };
  EXPECT_EQ(error_of(seek), errc::revoked);
  EXPECT_EQ(out->error(), errc::revoked);
  EXPECT_EQ(seek(), 0) << "it was told";
  EXPECT_TRUE(out.good());
}

INSTANTIATE_TEST_SUITE_P(Of, BoostSeek, testing::Bool(), [](const auto& instance) {
  return instance.param ? "TellingThePosition" : "GoingThere";
});

TEST(BoostDeviceFailure, IsToldByCloseWhenBoostIgnoredIt) {
  remote_memory memory("..........");
  io::stream<remote_sink> out(memory.region);
  out << "lost";
  memory.exposed.close();
  EXPECT_EQ(error_of([&] { out.close(); }), errc::revoked);

  remote_memory other("..........");
  const remote_sink device(other.region);
  io::filtering_ostream chain;
  chain.push(io::gzip_compressor());
  chain.push(device);
  chain << "lost";
  other.exposed.close();
  EXPECT_EQ(error_of([&] { io::close(chain); }), errc::revoked);
  EXPECT_EQ(device.error(), errc::revoked) << device.error_message();
}

TEST(BoostDeviceFailure, IsSilentInADestructor) {
  remote_memory memory("..........");
  {
    io::stream<remote_sink> out(memory.region);
    out << "lost";
    remote_sink device(memory.region);
    device.write("lost", 4);
    memory.exposed.close();
  }
  EXPECT_EQ(memory.bytes, "..........");
}

TEST(BoostDeviceFailure, IsReportedBeforeAReadTakesPlace) {
  remote_memory memory(sample_text(1000, 1));
  io::stream<remote_device> stream(memory.region);
  stream << "lost";
  memory.exposed.close();
  EXPECT_EQ(stream.get(), EOF);
  EXPECT_TRUE(stream.bad());
  EXPECT_FALSE(stream.eof());
  EXPECT_EQ(stream->error(), errc::revoked);
}

TEST(BoostDeviceFailure, LastsUntilASeek) {
  remote_memory memory("..........", short_deadlines());
  remote_sink device(memory.region);
  EXPECT_EQ(device.write("ab", 2), 2);
  EXPECT_TRUE(device.flush());
  memory.pair.owner_process.stop();
  EXPECT_EQ(device.write("lost", 4), 4);
  EXPECT_EQ(error_of([&] { device.flush(); }), errc::timed_out);
  memory.pair.owner_process.resume();
  memory.settle();
  // Boost would hand over what it has kept now; at 2 it would be at the wrong place.
  EXPECT_EQ(error_of([&] { device.write("KEPT", 4); }), errc::timed_out);
  EXPECT_EQ(device.error(), errc::timed_out);
  EXPECT_EQ(std::streamoff(device.seek(0, ios::cur)), 2);
  EXPECT_EQ(device.write("new!", 4), 4);
  device.close();
  EXPECT_EQ(memory.bytes, "abnew!....");
}

TEST(BoostDeviceFailure, LetsNothingFollowWhatAFilterIgnored) {
  remote_memory memory("..........", short_deadlines());
  io::filtering_ostream out;
  out.push(io::counter());
  out.push(remote_sink(memory.region));
  memory.pair.owner_process.stop();
  out << "first" << std::flush;
  EXPECT_TRUE(out.good()) << "Boost ignores what becomes of a flush behind a filter";
  memory.pair.owner_process.resume();
  memory.settle();
  const std::string arrived = memory.bytes;
  out << "second" << std::flush;
  EXPECT_EQ(error_of([&] { io::close(out); }), errc::timed_out);
  EXPECT_EQ(memory.bytes, arrived) << "it belongs behind the first";
}

TEST(BoostDeviceFailure, LosesNothingThatIsRetried) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    remote_memory memory(std::string(40 * block, '.'), short_deadlines());
    fake_process& owner = memory.pair.owner_process;
    std::mt19937_64 random(seed);
    const std::string text = sample_text(memory.bytes.size(), seed);
    io::stream<remote_device> stream(memory.region, small_blocks);
    std::size_t failures = 0;
    for (std::size_t at = 0; at < text.size();) {
      if (random() % 5 == 0 && failures < 10) owner.stop();
      const std::size_t length = random() % (random() % 4 == 0 ? 8 * block : 9000);
      const std::string piece = text.substr(at, length);
      const bool last = at + piece.size() == text.size();
      stream.write(piece.data(), std::streamsize(piece.size()));
      if (last || random() % 16 == 0) stream.flush();
      if (stream.good()) {
        at += piece.size();
        continue;
      }
      ++failures;
      ASSERT_EQ(stream->error(), errc::timed_out) << stream->error_message();
      owner.resume();
      memory.settle();
      stream.clear();
      const std::streamoff told = stream.tellp();
      ASSERT_TRUE(stream.good());
      at = static_cast<std::size_t>(told);
    }
    EXPECT_GE(failures, 1U);
    EXPECT_TRUE(same(memory.bytes, text));
    owner.resume();
  }
}

}  // namespace
}  // namespace ucx::test
