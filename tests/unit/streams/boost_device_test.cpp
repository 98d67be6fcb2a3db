// Devices of Boost.Iostreams over a region: what Boost's parts make of them, and how long they
// live.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filter/counter.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/flush.hpp>
#include <boost/iostreams/operations.hpp>
#include <boost/iostreams/optimal_buffer_size.hpp>
#include <boost/iostreams/restrict.hpp>
#include <boost/iostreams/stream.hpp>
#include <boost/iostreams/tee.hpp>
#include <boost/iostreams/traits.hpp>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "support/files/temporary_directory.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/boost_device.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

namespace io = boost::iostreams;
using std::ios;
using testing::HasSubstr;

constexpr std::size_t block = 64 * 1024;
constexpr stream_options small_blocks{.buffer_size = block};

template <class Device, class... Tags>
constexpr bool has_tags = (std::is_convertible_v<typename io::category_of<Device>::type*, Tags*> &&
                           ...);

static_assert(std::is_same_v<io::mode_of<remote_source>::type, io::input_seekable>);
static_assert(std::is_same_v<io::mode_of<remote_sink>::type, io::output_seekable>);
static_assert(std::is_same_v<io::mode_of<remote_device>::type, io::seekable>);
static_assert(has_tags<remote_source, io::device_tag, io::closable_tag, io::flushable_tag,
                       io::optimally_buffered_tag>);
static_assert(has_tags<remote_sink, io::device_tag, io::closable_tag, io::flushable_tag,
                       io::optimally_buffered_tag>);
static_assert(has_tags<remote_device, io::device_tag, io::closable_tag, io::flushable_tag,
                       io::optimally_buffered_tag>);

/// Returns all that is left.
std::string rest_of(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

// ---- Boost's parts

TEST(BoostDevice, IsReadByAStream) {
  remote_memory memory("one\ntwo 3\n");
  io::stream<remote_source> in(memory.region);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "one");
  int number = 0;
  in >> line >> number;
  EXPECT_EQ(number, 3);
  in.seekg(-9, ios::end);
  EXPECT_EQ(std::streamoff(in.tellg()), 1);
  EXPECT_EQ(rest_of(in), "ne\ntwo 3\n");
  EXPECT_FALSE(in->error());
  EXPECT_EQ(in->error_message(), "");
}

TEST(BoostDevice, IsWrittenByAStreamAndVisibleWhenItIsFlushed) {
  remote_memory memory("..........");
  io::stream<remote_sink> out(memory.region, stream_options{.buffer_size = 4});
  out << "n=" << 42;
  memory.settle();
  EXPECT_EQ(memory.bytes, "..........") << "it is Boost's yet";
  out << std::flush;
  EXPECT_EQ(memory.bytes, "n=42......");
  out.seekp(-1, ios::end);
  out << ';';
  out.close();
  EXPECT_EQ(memory.bytes, "n=42.....;");
}

TEST(BoostDevice, ReadsWhatItWroteWithoutASeek) {
  remote_memory memory("0123456789");
  io::stream<remote_device> both(memory.region);
  EXPECT_EQ(both.get(), '0');
  both << "ab";
  EXPECT_EQ(both.get(), '3');
  EXPECT_EQ(std::streamoff(both.tellp()), 4);
  both.seekg(0);
  EXPECT_EQ(rest_of(both), "0ab3456789");
  EXPECT_EQ(memory.bytes, "0ab3456789");
}

TEST(BoostDevice, AsksNoMoreOftenThanOurOwnStreams) {
  const std::string text = sample_text(40 * block, 5);
  remote_memory memory(text);
  const auto transfers_of = [&](std::istream& in) {
    const std::uint64_t before = memory.transfers();
    EXPECT_TRUE(rest_of(in) == text);
    return memory.transfers() - before;
  };
  ucx::istream ours(memory.region, small_blocks);
  const std::uint64_t wanted = transfers_of(ours);
  io::stream<remote_source> boost(memory.region, small_blocks);
  EXPECT_EQ(io::optimal_buffer_size(*boost), 4096);
  EXPECT_LE(transfers_of(boost), wanted);
}

TEST(BoostDevice, SeeksWithoutSending) {
  remote_memory memory(sample_text(4 * block, 6));
  const remote_source device(memory.region);
  io::stream<remote_source> in(device);
  const std::uint64_t before = memory.transfers();
  for (const std::streamoff target : {200'000, 0, 7}) {
    in.seekg(target);
    EXPECT_EQ(std::streamoff(in.tellg()), target);
  }
  EXPECT_EQ(memory.transfers(), before);
}

TEST(BoostDevice, IsCopiedFromAndTo) {
  const std::string text = sample_text(3 * block + 5, 7);
  remote_memory memory(text);
  std::ostringstream got;
  EXPECT_EQ(io::copy(remote_source(memory.region, small_blocks), got),
            std::streamsize(text.size()));
  EXPECT_TRUE(got.str() == text);

  remote_memory target(std::string(text.size(), '.'));
  const remote_source from(memory.region, small_blocks);
  const remote_sink to(target.region, small_blocks);
  EXPECT_EQ(io::copy(from, to), std::streamsize(text.size()));
  EXPECT_TRUE(target.bytes == text);
  EXPECT_FALSE(from.is_open()) << "copy closes both, and these are they";
  EXPECT_FALSE(to.is_open());
}

TEST(BoostDevice, IsATeesSink) {
  remote_memory first("......");
  remote_memory second("......");
  {
    io::stream<io::tee_device<remote_sink, remote_sink>> out(
        io::tee(remote_sink(first.region), remote_sink(second.region)));
    out << "twice";
    out.close();
  }
  EXPECT_EQ(first.bytes, "twice.");
  EXPECT_EQ(second.bytes, "twice.");

  remote_memory source("source");
  io::filtering_istream in;
  in.push(io::tee(remote_sink(first.region)));
  in.push(remote_source(source.region));
  EXPECT_EQ(rest_of(in), "source");
  in.reset();
  EXPECT_EQ(first.bytes, "source");
}

TEST(BoostDevice, IsRestricted) {
  remote_memory memory("0123456789");
  io::stream<io::restriction<remote_source>> middle(
      io::restrict(remote_source(memory.region), 3, 4));
  EXPECT_EQ(rest_of(middle), "3456");
  middle.clear();
  middle.seekg(1);
  EXPECT_EQ(middle.get(), '4');
  auto first = io::restrict(remote_source(memory.region), 0, 1);
  char c = '#';
  EXPECT_EQ(io::read(first, &c, 1), 1);
  EXPECT_EQ(io::read(first, &c, 1), -1) << "0 would mean that more may come";

  io::stream<io::restriction<remote_device>> edit(io::restrict(remote_device(memory.region), 5, 3));
  edit << "abc" << std::flush;
  EXPECT_FALSE(edit << "d" << std::flush) << "it ends there";
  edit.clear();
  edit.seekg(0);
  EXPECT_EQ(rest_of(edit), "abc");
  EXPECT_EQ(memory.bytes, "01234abc89");

  io::stream<io::restriction<remote_sink>> tail(io::restrict(remote_sink(memory.region), 8));
  tail << "YZ";
  tail.close();
  EXPECT_EQ(memory.bytes, "01234abcYZ");
}

TEST(BoostDevice, EndsAChainOfFilters) {
  remote_memory memory("one\ntwo\nthree\n");
  io::filtering_istream in;
  in.push(io::counter());
  in.push(remote_source(memory.region), 5);
  EXPECT_EQ(rest_of(in), memory.bytes);
  EXPECT_EQ(in.component<io::counter>(0)->lines(), 3);
  EXPECT_FALSE(in.component<remote_source>(1)->error());
}

TEST(BoostDevice, WorksWithoutAnyStream) {
  remote_memory memory("0123456789");
  remote_device device(memory.region);
  std::array<char, 4> bytes{};
  EXPECT_EQ(io::read(device, bytes.data(), 4), 4);
  EXPECT_EQ(std::string(bytes.data(), 4), "0123");
  EXPECT_EQ(std::streamoff(io::seek(device, 2, ios::cur)), 6);
  EXPECT_EQ(io::write(device, "ab", 2), 2);
  EXPECT_EQ(io::read(device, bytes.data(), 4), 2) << "what there is";
  EXPECT_EQ(io::read(device, bytes.data(), 4), -1) << "the end";
  io::seek(device, 0, ios::beg);
  EXPECT_EQ(io::read(device, bytes.data(), 0), -1) << "as Boost's own, which a restriction needs";
  EXPECT_TRUE(io::flush(device));
  EXPECT_EQ(memory.bytes, "012345ab89");
  io::close(device);
  EXPECT_FALSE(device.is_open());
}

TEST(BoostDevice, DropsWhatWasReadAheadWhenItIsFlushed) {
  remote_memory memory("old old old ");
  memory.pair.owner_process.let_sources_change();
  io::stream<remote_source> in(memory.region);
  std::string word;
  in >> word;
  memory.bytes = "new new new ";
  in.sync();
  in.seekg(in.tellg());
  in >> word;
  EXPECT_EQ(word, "new");
}

// ---- Handles

TEST(BoostDevice, SharesItsPositionWithItsCopies) {
  remote_memory memory("0123456789");
  remote_device first(memory.region);
  remote_device second = first;
  remote_device third(std::move(first));
  char c = '#';
  EXPECT_EQ(second.read(&c, 1), 1);
  EXPECT_EQ(third.read(&c, 1), 1);
  EXPECT_EQ(c, '1');
  EXPECT_EQ(first.read(&c, 1), 1) << "a move copies";
  EXPECT_EQ(c, '2');
  remote_device other(memory.region);
  other = std::move(second);
  EXPECT_EQ(other.write("x", 1), 1);
  EXPECT_TRUE(first.flush());
  EXPECT_EQ(memory.bytes, "012x456789");
}

TEST(BoostDevice, ClosesForAllCopiesAndOnce) {
  remote_memory memory("0123456789");
  remote_device device(memory.region);
  remote_device copy = device;
  EXPECT_EQ(device.write("abc", 3), 3);
  copy.close();
  EXPECT_EQ(memory.bytes, "abc3456789");
  EXPECT_FALSE(device.is_open());
  EXPECT_NO_THROW(device.close());
  std::error_code ec = errc::busy;
  copy.close(ec);
  EXPECT_FALSE(ec);
}

template <class Call>
ucx::error failure_of(Call&& call) {
  try {
    call();
  } catch (const ucx::error& failed) {
    return failed;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {errc::unexpected, "nothing"};
}

TEST(BoostDevice, SaysThatItIsClosed) {
  remote_memory memory("0123456789");
  remote_device device(memory.region);
  device.close();
  char c = '#';
  for (const ucx::error& failed :
       {failure_of([&] { device.read(&c, 1); }), failure_of([&] { device.write(&c, 1); }),
        failure_of([&] { device.flush(); }), failure_of([&] { device.seek(0, ios::cur); })}) {
    EXPECT_EQ(failed.code(), errc::closed);
    EXPECT_THAT(failed.what(), HasSubstr(memory.region.description()));
  }
  EXPECT_EQ(memory.bytes, "0123456789");
}

TEST(BoostDevice, IsClosedByItsStreamUnlessThatIsToldNotTo) {
  remote_memory memory("0123456789");
  const remote_sink device(memory.region);
  {
    io::stream<remote_sink> out(device);
    out.set_auto_close(false);
    out << "ab";
  }
  EXPECT_TRUE(device.is_open());
  {
    io::stream<remote_sink> out(device);
    out << "cd";
  }
  EXPECT_FALSE(device.is_open());
  EXPECT_EQ(memory.bytes.substr(4), "456789");
  EXPECT_EQ(memory.bytes.substr(0, 2), "cd")
      << "Boost drops what a stream that is not closed holds";
}

TEST(BoostDevice, DrainsWhenTheLastCopyGoes) {
  remote_memory memory("0123456789");
  {
    remote_sink device(memory.region);
    std::optional<remote_sink> copy(device);
    EXPECT_EQ(device.write("abc", 3), 3);
    copy.reset();
    memory.settle();
    EXPECT_EQ(memory.bytes, "0123456789") << "a copy closes nothing";
  }
  EXPECT_EQ(memory.bytes, "abc3456789");
}

TEST(BoostDevice, OutlivesTheHandleOfItsRegion) {
  remote_memory memory("0123456789");
  std::optional<remote_region> handle(memory.region.share());
  io::stream<remote_source> in(*handle);
  handle.reset();
  EXPECT_EQ(rest_of(in), "0123456789");
}

// ---- Names

TEST(BoostDevice, OpensWhatAClientsServerPublishes) {
  simulated_server served;
  std::string bytes = "0123456789";
  const publication published =
      served.server().publish("text", std::as_writable_bytes(std::span(bytes)), access::read_write);
  std::error_code ec;
  client reader = served.connect(ec);
  ASSERT_FALSE(ec);
  io::stream<remote_device> stream(reader, "text");
  EXPECT_EQ(stream.get(), '0');
  stream << "ab" << std::flush;
  EXPECT_EQ(bytes, "0ab3456789");
  stream.seekg(12);
  EXPECT_TRUE(stream.good()) << "as in a file";
  EXPECT_EQ(stream.get(), std::char_traits<char>::eof());
  stream.clear();
  stream.close();

  const ucx::error failed = failure_of([&] { remote_source(reader, "nothing"); });
  EXPECT_EQ(failed.code(), errc::no_such_name);
  EXPECT_THAT(failed.what(), HasSubstr("nothing"));
  const remote_sink empty(reader, "nothing", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(empty.is_open());
}

TEST(BoostDevice, OpensALocalPath) {
  const temporary_directory directory;
  const std::string path = directory / "file";
  {
    io::stream<remote_sink> out(path);
    out << "local text";
  }
  EXPECT_EQ(content_of(path), "local text");
  io::stream<remote_source> in(path);
  in.seekg(6);
  EXPECT_EQ(rest_of(in), "text");

  const ucx::error failed = failure_of([&] { remote_device(directory / "other"); });
  EXPECT_EQ(failed.code(), std::errc::no_such_file_or_directory);
  EXPECT_THAT(failed.what(), HasSubstr("other: "));
  std::error_code ec;
  EXPECT_FALSE(remote_source((directory / "other").string(), {}, ec).is_open());
  EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
}

TEST(BoostDevice, RefusesWhatTheRegionDoesNotGrant) {
  remote_memory memory("text", {}, access::read);
  std::error_code ec;
  remote_sink sink(memory.region, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_FALSE(sink.is_open());
  EXPECT_EQ(failure_of([&] { sink.write("x", 1); }).code(), errc::closed);
  const ucx::error failed = failure_of([&] { remote_device(memory.region); });
  EXPECT_EQ(failed.code(), errc::permission_denied);
  EXPECT_THAT(failed.what(), HasSubstr(memory.region.description()));
  const remote_source source(memory.region, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_TRUE(source.is_open());
  memory.region.close();
  EXPECT_EQ(failure_of([&] { remote_source(memory.region); }).code(), errc::closed);
}

// ---- A mapped region is an array

TEST(MappedRegion, IsASourceOfBoostInPlace) {
  remote_memory memory("one\ntwo\nthree\n", {.shares_memory = true});
  const std::span<const std::byte> bytes = memory.region.view(0, memory.region.size());
  const io::array_source source(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  io::stream<io::array_source> in(source);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "one");
  in.seekg(8);
  EXPECT_EQ(rest_of(in), "three\n");
  std::ostringstream copied;
  io::copy(source, copied);
  EXPECT_EQ(copied.str(), memory.content());
  io::filtering_istream counted;
  counted.push(io::counter());
  counted.push(source);
  EXPECT_EQ(rest_of(counted), memory.content());
  EXPECT_EQ(counted.component<io::counter>(0)->lines(), 3);
}

TEST(MappedRegion, IsASinkOfBoostInPlace) {
  remote_memory memory("one two three", {.shares_memory = true});
  const std::span<std::byte> bytes = memory.region.writable_view(0, memory.region.size());
  io::stream<io::array_sink> out(reinterpret_cast<char*>(bytes.data()), bytes.size());
  out.seekp(4);
  out << "TWO" << std::flush;
  EXPECT_TRUE(out.good());
  EXPECT_EQ(memory.content(), "one TWO three");
  out.seekp(8);
  out << "more than fits";
  EXPECT_FALSE(out.flush().good());
  EXPECT_EQ(memory.content(), "one TWO more ");
}

}  // namespace
}  // namespace ucx::test
