// What a stream writes, when, and in which order.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(WriteBehind, SendsFullBlocksAndKeepsTheRest) {
  remote_memory memory(std::string(8 * block, '.'));
  const std::string text = sample_text(2 * block + 100, 13);
  remote_streambuf buffer(memory.region, out, small_blocks);
  const auto before = memory.transfers();
  for (const char c : text) ASSERT_NE(buffer.sputc(c), std::char_traits<char>::eof());
  EXPECT_EQ(memory.transfers() - before, 2U);
  memory.settle();
  EXPECT_TRUE(same(memory.bytes.substr(0, 2 * block), text.substr(0, 2 * block)));
  EXPECT_EQ(memory.bytes[2 * block], '.');
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_TRUE(same(memory.bytes.substr(0, text.size()), text));
  EXPECT_EQ(memory.bytes[text.size()], '.');
  EXPECT_EQ(memory.transfers() - before, 3U);
}

TEST(WriteBehind, WritesLargePiecesStraightAway) {
  remote_memory memory(std::string(8 * block, '.'));
  const std::string text = sample_text(4 * block + 100, 14);
  remote_streambuf buffer(memory.region, out, small_blocks);
  write(buffer, "head");
  const auto before = memory.transfers();
  EXPECT_EQ(write(buffer, text), std::streamsize(text.size()));
  EXPECT_EQ(memory.transfers() - before, 6U);  // the head, and five pieces
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_TRUE(same(memory.bytes.substr(0, text.size() + 5), "head" + text + "."));
}

TEST(WriteBehind, MakesVisibleOnlyByFlush) {
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

TEST(WriteBehind, ContinuesWhatIsPendingAfterSeeksToAndFro) {
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

TEST(WriteBehind, WritesWhatFitsAndSaysNoSpace) {
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
    EXPECT_TRUE(same(memory.bytes, text.substr(0, size)));
    buffer.pubseekpos(0);
    std::size_t taken = 0;
    while (buffer.sputc('y') == 'y') ++taken;
    EXPECT_EQ(taken, size);
    EXPECT_EQ(buffer.error(), errc::no_space);
    EXPECT_EQ(buffer.pubsync(), 0);
    EXPECT_TRUE(same(memory.bytes, std::string(size, 'y')));
  }
}

TEST(WriteBehind, ReadsWhatItWrote) {
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

TEST(WriteBehind, WritesOverWhatItWroteInOrder) {
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
    EXPECT_TRUE(same(memory.bytes, expected));
  }
}

}  // namespace
}  // namespace ucx::test
