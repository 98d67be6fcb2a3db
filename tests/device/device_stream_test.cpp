// The script that streams are compared by with std::fstream, played with blocks of every kind of
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/files/temporary_file.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::ios::openmode in_and_out = std::ios::in | std::ios::out | std::ios::binary;

/// The kind of the blocks, and the size of the stream's buffer.
class DeviceStreamScript : public testing::TestWithParam<std::tuple<memory_kind, std::size_t>> {
 protected:
  static std::size_t buffer_size() { return std::get<1>(GetParam()); }
  static std::size_t size() { return std::min<std::size_t>(20 * buffer_size() + 300, 30'000); }

  /// Makes a script whose blocks are of the kind.
  static stream_script make(std::uint64_t seed, const std::string& text) {
    stream_script made(seed, text, std::max<std::size_t>(200, 3 * buffer_size()));
    made.use_memory([](std::string& bytes, const std::function<void(char*)>& use) {
      kind_memory memory(std::get<0>(GetParam()), std::max<std::size_t>(bytes.size(), 1));
      const auto there = memory.bytes().first(bytes.size());
      cuda_program::put(there, std::as_bytes(std::span(bytes)));
      use(memory.characters());
      cuda_program::put(std::as_writable_bytes(std::span(bytes)), there);
    });
    return made;
  }
  static void fill(const temporary_file& file, const std::string& text) {
    file.write(0, std::as_bytes(std::span(text)));
  }
  const cuda_program program_;
};

TEST_P(DeviceStreamScript, AgreesOverAPeersRegion) {
  for (const route over : {route::tcp_by_address, route::mapped}) {
    connected_pair pair({over});
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(4); ++seed) {
      SCOPED_TRACE(to_string(over) + ", seed " + std::to_string(seed));
      const std::string text = sample_text(size(), seed);
      const temporary_file file;
      fill(file, text);
      const memory_region exposed = pair.allocate(text.size());
      std::memcpy(exposed.bytes().data(), text.data(), text.size());
      stream_script script = make(seed, text);
      {
        std::fstream oracle(file.path(), in_and_out);
        ucx::iostream ours(pair.open(exposed), {.buffer_size = buffer_size()});
        ASSERT_TRUE(script.play(ours, oracle, 400));
      }
      EXPECT_EQ(std::memcmp(exposed.bytes().data(), script.content().data(), text.size()), 0);
      EXPECT_TRUE(content_of(file.path()) == script.content());
    }
  }
}

/// By message, which is the way to a device's; pinned memory is read where it lies.
TEST_P(DeviceStreamScript, AgreesOverAPeersMemoryOfEveryKind) {
  connected_pair pair;
  for (const memory_kind kind : every_kind) {
    for (std::uint64_t seed = 5; seed < 5 + effort<std::uint64_t>(2); ++seed) {
      SCOPED_TRACE(std::string(to_string(kind)) + ", seed " + std::to_string(seed));
      const std::string text = sample_text(size(), seed);
      const temporary_file file;
      fill(file, text);
      kind_memory owned(kind, text.size());
      owned.put(std::as_bytes(std::span(text)));
      const memory_region exposed(*pair.owner_context, owned.bytes(), access::read_write);
      stream_script script = make(seed, text);
      {
        std::fstream oracle(file.path(), in_and_out);
        ucx::iostream ours(pair.open(exposed), {.buffer_size = buffer_size()});
        ASSERT_TRUE(script.play(ours, oracle, 250));
      }
      const std::vector<std::byte> now = owned.content();
      EXPECT_EQ(std::memcmp(now.data(), script.content().data(), text.size()), 0);
    }
  }
}

TEST_P(DeviceStreamScript, AgreesOverAFileOfThisMachine) {
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(4); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string text = sample_text(size(), seed);
    const temporary_file mine;
    const temporary_file theirs;
    fill(mine, text);
    fill(theirs, text);
    stream_script script = make(seed, text);
    {
      std::fstream oracle(theirs.path(), in_and_out);
      ucx::fstream ours(mine.path(), in_and_out);
      ASSERT_TRUE(script.play(ours, oracle, 400));
    }
    EXPECT_TRUE(content_of(mine.path()) == script.content());
    EXPECT_TRUE(content_of(theirs.path()) == script.content());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceStreamScript,
                         testing::Combine(testing::ValuesIn(every_kind),
                                          testing::Values<std::size_t>(5, 4096)),
                         [](const auto& instance) {
                           return std::string(to_string(std::get<0>(instance.param))) + "_" +
                                  std::to_string(std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace ucx::test
