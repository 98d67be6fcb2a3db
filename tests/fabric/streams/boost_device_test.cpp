// Devices of Boost.Iostreams over real connections: by URL, over each transport, beyond 4 GiB.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/iostreams/close.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/bzip2.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/slice.hpp>
#include <boost/iostreams/stream.hpp>
#include <boost/iostreams/traits.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ios>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "support/basics/effort.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/bytes/sparse_memory.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/boost_device.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

namespace io = boost::iostreams;
using std::ios;
using testing::HasSubstr;

std::string rest_of(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

// ---- Our own streams

template <class Ours, class Standard>
constexpr bool is_taken_for = io::is_std_file_device<Ours>::value&&
    std::is_same_v<typename io::category_of<Ours>::type, typename io::category_of<Standard>::type>;

/// A class of a program's.
class own_buffer : public ucx::filebuf {};

static_assert(is_taken_for<ucx::ifstream, std::ifstream>);
static_assert(is_taken_for<ucx::ofstream, std::ofstream>);
static_assert(is_taken_for<ucx::fstream, std::fstream>);
static_assert(is_taken_for<ucx::filebuf, std::filebuf>);
static_assert(is_taken_for<own_buffer, std::filebuf>);
static_assert(!io::is_std_file_device<std::ostream>::value);
static_assert(!io::is_std_file_device<ucx::ostream>::value);

TEST(BoostCopy, ClosesOurStreamsSoThatANewFileIsThere) {
  const temporary_directory directory;
  directory.make("data", "text");
  ucx::server server{served_there()};
  const publication store = server.publish_store(directory / "", {.writable = true});
  ucx::ifstream in(server.url() + "/data");
  ucx::ofstream out(server.url() + "/made");
  ASSERT_TRUE(in && out) << in.error_message() << out.error_message();
  EXPECT_EQ(io::copy(in, out), 4);
  EXPECT_FALSE(in.is_open());
  EXPECT_FALSE(out.is_open());
  EXPECT_EQ(content_of(directory / "made"), "text");

  ucx::filebuf source;
  ucx::filebuf sink;
  ASSERT_NE(source.open(server.url() + "/made", ios::in), nullptr) << source.error_message();
  ASSERT_NE(sink.open(server.url() + "/again", ios::out), nullptr) << sink.error_message();
  EXPECT_EQ(io::copy(source, sink), 4);
  EXPECT_FALSE(sink.is_open());
  EXPECT_EQ(content_of(directory / "again"), "text");
}

// ---- Over each transport

class BoostDeviceOver : public testing::TestWithParam<pair_options> {
 protected:
  template <class Compressor, class Decompressor>
  void write_and_read_through_a_filter() {
    connected_pair pair(GetParam());
    const memory_region owned = pair.allocate(4 << 20);
    const remote_region region = pair.open(owned);
    // More than a buffer, also when it is compressed.
    const std::string text = sample_text(effort(3'000'000U), 11);
    const stream_options options{.buffer_size = effort(stream_options().buffer_size)};
    std::string compressed;
    compress<Compressor>(text, io::back_inserter(compressed));
    ASSERT_GT(compressed.size(), options.buffer_size);
    ASSERT_LT(compressed.size(), region.size());
    compress<Compressor>(text, remote_sink(region, options));
    // What is behind the end is no more of it.
    const auto written =
        io::slice(remote_source(region, options), 0, std::int64_t(compressed.size()));
    io::filtering_istream in;
    in.push(Decompressor());
    in.push(written);
    EXPECT_TRUE(rest_of(in) == text);
    EXPECT_FALSE(in.bad());
  }

 private:
  template <class Compressor, class Sink>
  static void compress(const std::string& text, const Sink& into) {
    io::filtering_ostream out;
    out.push(Compressor());
    out.push(into);
    out << text;
    io::close(out);
  }
};

TEST_P(BoostDeviceOver, WritesAndReadsGzip) {
  write_and_read_through_a_filter<io::gzip_compressor, io::gzip_decompressor>();
}
TEST_P(BoostDeviceOver, WritesAndReadsZlib) {
  write_and_read_through_a_filter<io::zlib_compressor, io::zlib_decompressor>();
}
TEST_P(BoostDeviceOver, WritesAndReadsBzip2) {
  write_and_read_through_a_filter<io::bzip2_compressor, io::bzip2_decompressor>();
}
TEST_P(BoostDeviceOver, WritesAndReadsZstd) {
  write_and_read_through_a_filter<io::zstd_compressor, io::zstd_decompressor>();
}

INSTANTIATE_TEST_SUITE_P(Routes, BoostDeviceOver,
                         testing::Values(pair_options{.over = route::tcp_by_address},
                                         pair_options{.over = route::tcp_by_listener},
                                         pair_options{.over = route::shared_memory},
                                         pair_options{.over = route::loopback,
                                                      .owner = progress_mode::caller}),
                         name_of_pair);

// ---- By URL

TEST(UrlBoostDevice, ReadsAndWrites) {
  std::string text = "one\ntwo\nthree\n";
  ucx::server server{served_there()};
  const publication published = server.publish("text", bytes_of(text), access::read_write);
  io::stream<remote_source> in(server.url("text"));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "one");
  io::stream<remote_sink> out(server.url("text"));
  out << "ONE" << std::flush;
  EXPECT_EQ(text, "ONE\ntwo\nthree\n");
  io::stream<remote_device> edit(server.url("text"));
  edit.seekp(-2, ios::end);
  edit << "E";
  edit.seekg(0);
  EXPECT_EQ(rest_of(edit), "ONE\ntwo\nthreE\n");
}

TEST(UrlBoostDevice, CopiesFromOneServerToAnother) {
  const temporary_directory directory;
  const std::string text = sample_text(5'000'000, 3);
  std::string target(text.size(), '.');
  ucx_server from;
  ucx_server to;
  const publication source = from.publish_file("file", directory.make("file", text));
  const publication sink = to.publish("target", bytes_of(target), access::read_write);
  EXPECT_EQ(io::copy(remote_source(from.url("file")), remote_sink(to.url("target"))),
            std::streamsize(text.size()));
  EXPECT_TRUE(target == text);
}

TEST(UrlBoostDevice, SaysWhatItCouldNotOpen) {
  ucx::server server{served_there()};
  try {
    io::stream<remote_source> in(server.url("nothing"));
    FAIL() << "it was opened";
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::no_such_name);
    EXPECT_THAT(failed.what(), HasSubstr(server.url("nothing")));
  }
}

TEST(UrlBoostDevice, ShowsThatItsServerIsGone) {
  std::string text(5'000'000, 'x');
  std::optional<ucx_server> server(std::in_place);
  std::optional<publication> published(server->publish("text", bytes_of(text), access::read_write));
  const remote_device device(server->url("text"));
  io::stream<remote_device> stream(device);
  EXPECT_EQ(stream.get(), 'x');
  published.reset();
  server.reset();
  stream.seekg(-10, ios::end);
  EXPECT_EQ(stream.get(), EOF);
  EXPECT_TRUE(stream.bad());
  EXPECT_FALSE(stream.eof());
  EXPECT_TRUE(device.error());
  EXPECT_THAT(device.error_message(), HasSubstr("text"));
}

// ---- Beyond 4 GiB

constexpr auto one_gib = static_cast<std::int64_t>(gib);

class LargeBoostDevice : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    if (!memory_.usable()) GTEST_SKIP() << "9 GiB of address space can not be had here";
  }
  std::string at(std::int64_t offset, std::size_t length) const {
    std::string text(length, '#');
    std::memcpy(text.data(), memory_.bytes().data() + offset, length);
    return text;
  }

  sparse_memory memory_{9 * one_gib};
  connected_pair pair_{GetParam()};
};

TEST_P(LargeBoostDevice, SeeksReadsAndWritesThere) {
  memory_region owned(*pair_.owner_context, memory_.bytes(), access::read_write);
  const remote_region region = pair_.open(owned);
  io::stream<remote_device> stream(region);
  for (const std::int64_t place : {2 * one_gib - 3, 2 * one_gib, 4 * one_gib - 3, 4 * one_gib,
                                   5 * one_gib + 7, 9 * one_gib - 6}) {
    SCOPED_TRACE(place);
    stream.seekp(place);
    stream << "across";
    EXPECT_EQ(std::streamoff(stream.tellp()), place + 6);
    stream.seekg(-6, ios::cur);
    EXPECT_EQ(std::streamoff(stream.tellg()), place);
    std::string word(6, '#');
    stream.read(word.data(), 6);
    EXPECT_EQ(word, "across");
    stream.seekg(place - 9 * one_gib, ios::end);
    EXPECT_EQ(stream.get(), 'a');
    EXPECT_TRUE(stream.good());
    EXPECT_EQ(at(place, 6), "across");
  }
  stream.seekg(0);
  stream.seekg(8 * one_gib, ios::cur);
  EXPECT_EQ(std::streamoff(stream.tellg()), 8 * one_gib);
  EXPECT_EQ(stream.get(), 0);
  // Where an offset that was cut off would have landed.
  EXPECT_EQ(at(one_gib + 7, 6), std::string(6, '\0'));
  EXPECT_EQ(at(0, 6), std::string(6, '\0'));
}

TEST_P(LargeBoostDevice, IsSlicedThere) {
  memory_region owned(*pair_.owner_context, memory_.bytes(), access::read_write);
  const remote_region region = pair_.open(owned);
  const std::int64_t begin = 4 * one_gib - 5;
  {
    io::stream<io::restriction<remote_sink>> out(io::slice(remote_sink(region), begin, 10));
    out << "0123456789";
    out.close();
  }
  EXPECT_EQ(at(begin, 10), "0123456789");
  io::stream<io::restriction<remote_source>> in(io::slice(remote_source(region), begin, 10));
  in.seekg(4);
  EXPECT_EQ(rest_of(in), "456789");
  io::stream<io::restriction<remote_device>> large(
      io::slice(remote_device(region), one_gib, 7 * one_gib));
  large.seekg(begin - one_gib);
  EXPECT_EQ(large.get(), '0');
  large.seekg(-6 * one_gib, ios::end);
  EXPECT_EQ(std::streamoff(large.tellg()), one_gib);
}

INSTANTIATE_TEST_SUITE_P(Messages, LargeBoostDevice, testing::ValuesIn(message_pairs()),
                         name_of_pair);

}  // namespace
}  // namespace ucx::test
