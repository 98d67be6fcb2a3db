// Boost's streams over our devices do what std::fstream does over a file of the same size.
#include <gtest/gtest.h>

#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/bzip2.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/restrict.hpp>
#include <boost/iostreams/stream.hpp>
#include <boost/iostreams/stream_buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>

#include "support/basics/effort.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/boost_device.hpp"

namespace ucx::test {
namespace {

namespace io = boost::iostreams;
using std::ios;

constexpr auto both = ios::in | ios::out | ios::binary;

// ---- One script, played into the device and into a file

/// The size of Boost's buffer, and of ours.
class BoostOracle : public testing::TestWithParam<std::tuple<std::streamsize, std::size_t>> {
 protected:
  static script_limits limits() {
    // Boost's buffers remember four bytes of what was before them, and show what is in them.
    return {
        .goes_back = false, .asks_what_left = false, .seeks_outside = false, .tells_always = false};
  }

  /// Plays scripts of many sizes and seeds.
  template <class Device>
  void play(const script_limits& limits) {
    const auto [boost_buffer, our_buffer] = GetParam();
    const temporary_directory directory;
    for (const std::size_t size : {0U, 1U, 4097U, 30'000U}) {
      for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(2); ++seed) {
        SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
        const std::string text = sample_text(size, seed);
        const std::filesystem::path file = directory.make("file", text);
        simulated_pair_options pair;
        pair.seed = seed;
        remote_memory memory(text, pair);
        memory.pair.network.faults().reorder(0.2);
        stream_script script(seed, text, 9000, limits);
        {
          std::fstream oracle(file, both);
          io::stream_buffer<Device> buffer(
              Device(memory.region, stream_options{.buffer_size = our_buffer}), boost_buffer);
          std::iostream ours(&buffer);
          // Each of a large read's bytes is a transfer where a buffer of ours is one byte.
          ASSERT_TRUE(
              script.play(ours, oracle, effort<std::size_t>(our_buffer == 1 ? 80 : 250, 25)));
        }
        EXPECT_TRUE(memory.bytes == script.content());
        EXPECT_TRUE(content_of(file) == script.content());
      }
    }
  }
};

TEST_P(BoostOracle, AgreesOnASource) {
  script_limits reading = limits();
  reading.writes = false;
  play<remote_source>(reading);
}

TEST_P(BoostOracle, AgreesOnASink) {
  script_limits writing = limits();
  writing.reads = false;
  play<remote_sink>(writing);
}

TEST_P(BoostOracle, AgreesOnADevice) { play<remote_device>(limits()); }

INSTANTIATE_TEST_SUITE_P(
    Buffers, BoostOracle,
    testing::Combine(testing::Values<std::streamsize>(0, 1, 5, 4096, -1),
                     testing::Values<std::size_t>(1, 5, 4096, stream_options().buffer_size)),
    [](const auto& instance) {
      const std::streamsize boost_buffer = std::get<0>(instance.param);
      return (boost_buffer < 0 ? "Default" : std::to_string(boost_buffer)) + "Over" +
             std::to_string(std::get<1>(instance.param));
    });

// ---- The same through each filter that compresses

struct gzip {
  using compressor = io::gzip_compressor;
  using decompressor = io::gzip_decompressor;
};
struct zlib {
  using compressor = io::zlib_compressor;
  using decompressor = io::zlib_decompressor;
};
struct bzip2 {
  using compressor = io::bzip2_compressor;
  using decompressor = io::bzip2_decompressor;
};
struct zstd {
  using compressor = io::zstd_compressor;
  using decompressor = io::zstd_decompressor;
};

template <class Format>
class BoostFilter : public testing::Test {
 protected:
  template <class Sink>
  static void compress(const std::string& text, const Sink& into) {
    io::filtering_ostream out;
    out.push(typename Format::compressor());
    out.push(into);
    // In pieces: what is long goes past the buffers.
    for (std::size_t at = 0, piece = 1; at < text.size(); at += piece, piece = piece * 3 % 20'011) {
      out << text.substr(at, piece);
      if (piece % 5 == 0) out.flush();
    }
    io::close(out);
    EXPECT_TRUE(out.good());
  }

  template <class Source>
  static std::string decompress(const Source& from) {
    io::filtering_istream in;
    in.push(typename Format::decompressor());
    in.push(from);
    std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_FALSE(in.bad());
    return text;
  }
};

using formats = testing::Types<gzip, zlib, bzip2, zstd>;
TYPED_TEST_SUITE(BoostFilter, formats);

TYPED_TEST(BoostFilter, WritesAndReadsWhatAFileHas) {
  for (const std::size_t size : {0U, 1U, 4096U, 300'000U}) {
    SCOPED_TRACE("size " + std::to_string(size));
    const std::string text = sample_text(size, size + 1);
    std::string compressed;
    TestFixture::compress(text, io::back_inserter(compressed));
    ASSERT_FALSE(compressed.empty());

    remote_memory memory(std::string(compressed.size(), '#'));
    const stream_options options{.buffer_size = 10'000};
    TestFixture::compress(text, remote_sink(memory.region, options));
    EXPECT_TRUE(memory.bytes == compressed);
    EXPECT_TRUE(TestFixture::decompress(remote_source(memory.region, options)) == text);
    EXPECT_TRUE(TestFixture::decompress(remote_device(memory.region, options)) == text);
  }
}

TEST(BoostGzip, HasToBeToldWhereItsDataEnds) {
  std::string compressed;
  io::filtering_ostream out;
  out.push(io::gzip_compressor());
  out.push(io::back_inserter(compressed));
  out << "text";
  io::close(out);
  remote_memory memory(compressed + std::string(100, '\0'));
  const auto read = [&](const auto& source) {
    io::filtering_istream in;
    in.push(io::gzip_decompressor());
    in.push(source);
    std::string word;
    in >> word;
    EXPECT_EQ(word, "text");
    return in.bad();
  };
  EXPECT_TRUE(read(remote_source(memory.region))) << "what follows is no member";
  EXPECT_FALSE(
      read(io::restrict(remote_source(memory.region), 0, std::streamoff(compressed.size()))));
}

}  // namespace
}  // namespace ucx::test
