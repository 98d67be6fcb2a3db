// Streams over remote memory do what std::fstream does over a file of the same size.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "support/basics/effort.hpp"
#include "support/process/process_reading.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

/// A file that is gone with its test.
class temporary_file {
 public:
  explicit temporary_file(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("ucxio-oracle-" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  std::fstream open() const {
    return std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary);
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  std::filesystem::path path_;
};

constexpr std::size_t default_size = stream_options().buffer_size;

/// Buffer size and depth.
class StreamOracle : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  stream_options options() const {
    return {.buffer_size = std::get<0>(GetParam()), .queue_depth = std::get<1>(GetParam())};
  }

  /// Plays `steps` operations over `size` bytes, moving and swapping the streams in between.
  void play(std::size_t size, std::uint64_t seed, std::size_t steps,
            const simulated_pair_options& over = {}) {
    SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
    const std::string text = sample_text(size, seed);
    const temporary_file file(text);
    simulated_pair_options pair = over;
    pair.seed = seed;
    remote_memory memory(text, pair);
    memory.pair.network.faults().reorder(0.2);
    stream_script script(seed, text, std::max<std::size_t>(200, 3 * options().buffer_size));
    {
      std::fstream oracle = file.open();
      ucx::iostream ours(memory.region, options());
      ASSERT_TRUE(script.play(ours, oracle, steps / 3));
      ucx::iostream moved(std::move(ours));
      std::fstream moved_oracle(std::move(oracle));
      ASSERT_TRUE(script.play(moved, moved_oracle, steps / 3));
      ucx::iostream other(memory.region, options());
      swap(other, moved);
      moved = std::move(other);
      ASSERT_TRUE(script.play(moved, moved_oracle, steps / 3));
    }
    EXPECT_TRUE(memory.content() == script.content());
    EXPECT_TRUE(file.content() == script.content());
  }
};

TEST_P(StreamOracle, AgreesAroundTheSizeOfABuffer) {
  const std::size_t buffer = std::min<std::size_t>(options().buffer_size, 4096);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, buffer - 1, buffer, buffer + 1}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(4); ++seed) play(size, seed, 150);
  }
}

TEST_P(StreamOracle, AgreesOverSomeBuffers) {
  const std::size_t size = std::min<std::size_t>(20 * options().buffer_size + 300, 50'000);
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(10, 2); ++seed) {
    play(size, 100 + seed, 600);
  }
}

TEST_P(StreamOracle, AgreesWhereTransfersOvertakeEachOther) {
  const std::size_t size = std::min<std::size_t>(20 * options().buffer_size + 300, 50'000);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) play(size, 200 + seed, 300, over_hardware());
}

TEST_P(StreamOracle, AgreesWhereTheMemoryIsMapped) {
  const simulated_pair_options mapped{.shares_memory = true};
  const std::size_t buffer = std::min<std::size_t>(options().buffer_size, 4096);
  for (const std::size_t size : {std::size_t{1}, buffer - 1, buffer, buffer + 1, 5 * buffer + 7}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(3); ++seed) {
      play(size, 400 + seed, 600, mapped);
    }
  }
}

TEST_P(StreamOracle, AgreesWhereTheMemoryIsReadWhereItLies) {
  if (!system_reads_processes()) GTEST_SKIP() << "process_vm_readv is forbidden here";
  simulated_pair_options lent = one_host();
  lent.shares_memory = true;
  lent.lends_memory = true;
  const std::size_t buffer = std::min<std::size_t>(options().buffer_size, 4096);
  for (const std::size_t size : {std::size_t{1}, buffer - 1, buffer, buffer + 1, 5 * buffer + 7}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(3); ++seed) {
      play(size, 500 + seed, 600, lent);
    }
  }
}

using LargeStreamOracle = StreamOracle;

TEST_P(LargeStreamOracle, AgreesOverSomeBuffers) {
  const std::size_t size = 3 * options().buffer_size + 4711;
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(3); ++seed) {
    play(size, 300 + seed, 200);
  }
}

std::string name_of(const testing::TestParamInfo<StreamOracle::ParamType>& instance) {
  return "Size" + std::to_string(std::get<0>(instance.param)) + "Depth" +
         std::to_string(std::get<1>(instance.param));
}

INSTANTIATE_TEST_SUITE_P(Buffers, StreamOracle,
                         testing::Combine(testing::Values<std::size_t>(1, 2, 5, 4096, default_size),
                                          testing::Values<std::size_t>(1, 4)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Buffers, LargeStreamOracle,
                         testing::Combine(testing::Values<std::size_t>(4096, default_size),
                                          testing::Values<std::size_t>(1, 4)),
                         name_of);

}  // namespace
}  // namespace ucx::test
