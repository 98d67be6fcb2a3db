// Streams over what a server has in files do what std::fstream does over a file of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <tuple>
#include <utility>

#include "support/basics/effort.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/network.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using std::ios;

enum class kind {
  single,    ///< A file that was published by itself: it can only be read.
  of_store,  ///< What a store has, edited in place.
  made,      ///< What is made by being written, and appears when it is closed.
  read,      ///< What a store has, for reading alone.
  written,   ///< What is made so, for writing alone.
  appended,  ///< What a store has, and is only added to.
};

/// What is opened, and the size of a buffer.
class FileOracle : public testing::TestWithParam<std::tuple<kind, std::size_t>> {
 protected:
  static script_limits limits() {
    // What is available behind the end is a negative number in libstdc++'s files.
    switch (std::get<kind>(GetParam())) {
      case kind::single:
        return {.writes = false};
      case kind::read:
        return {.writes = false, .asks_what_left = false, .grows = true};
      case kind::written:
        return {.reads = false, .grows = true};
      case kind::appended:
        return {.reads = false, .grows = true, .appends = true};
      case kind::of_store:
      case kind::made:
        break;
    }
    return {.asks_what_left = false, .grows = true};
  }
  static ios::openmode mode() {
    switch (std::get<kind>(GetParam())) {
      case kind::single:
      case kind::read:
        return ios::in | ios::binary;
      case kind::of_store:
        return ios::in | ios::out | ios::binary;
      case kind::written:
        return ios::out | ios::binary;
      case kind::appended:
        return ios::out | ios::app | ios::binary;
      case kind::made:
        break;
    }
    return ios::in | ios::out | ios::trunc | ios::binary;
  }

  void play(std::size_t size, std::uint64_t seed) {
    SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
    const bool made =
        (mode() & ios::app) == 0 && ((mode() & ios::in) == 0 || (mode() & ios::trunc) != 0);
    const std::string text = sample_text(size, seed);
    const std::filesystem::path file = directory_.make("oracle", text);
    const std::filesystem::path served = directory_.make("served", text);
    const publication single = server_.publish_file("served", served, access::read);
    const publication store =
        server_.publish_store(directory_ / "", {.prefix = "store", .writable = true});
    const std::string name =
        std::get<kind>(GetParam()) == kind::single ? "/served" : "/store/served";
    const std::size_t buffer = std::get<std::size_t>(GetParam());
    stream_script script(seed, made ? "" : text, std::max<std::size_t>(200, 3 * buffer % 20'000),
                         limits());
    std::fstream oracle(file, mode());
    ucx::fstream ours(server_.url() + name, mode(), {.buffer_size = buffer});
    ASSERT_TRUE(ours) << ours.error_message();
    const std::size_t steps = effort<std::size_t>(buffer == 1 ? 60 : 150, 60);
    ASSERT_TRUE(script.play(ours, oracle, steps));
    ucx::fstream moved(std::move(ours));
    ASSERT_TRUE(script.play(moved, oracle, steps));
    moved.clear();
    moved.close();
    EXPECT_TRUE(moved) << moved.error_message();
    oracle.close();
    EXPECT_TRUE(content_of(served) == script.content());
    EXPECT_TRUE(content_of(file) == script.content());
  }

  const temporary_directory directory_;
  server server_{served_there()};
};

TEST_P(FileOracle, Agrees) {
  for (const std::size_t size : {0U, 1U, 4097U, 30'000U}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(3); ++seed) play(size, seed);
  }
}

std::string name_of(const testing::TestParamInfo<FileOracle::ParamType>& instance) {
  constexpr const char* names[] = {"Single", "OfStore", "Made", "Read", "Written", "Appended"};
  return names[static_cast<int>(std::get<kind>(instance.param))] +
         std::to_string(std::get<std::size_t>(instance.param));
}

INSTANTIATE_TEST_SUITE_P(
    Files, FileOracle,
    testing::Combine(testing::Values(kind::single, kind::of_store, kind::made, kind::read,
                                     kind::written, kind::appended),
                     testing::Values<std::size_t>(1, 5, 4096, stream_options().buffer_size)),
    name_of);

}  // namespace
}  // namespace ucx::test
