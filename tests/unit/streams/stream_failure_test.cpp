// What a stream makes of failed transfers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/streams/streambuf_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

simulated_pair_options one_second() {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1s;
  return options;
}

TEST(StreamFailure, RestoresThePositionOfAFailedRead) {
  remote_memory memory(sample_text(8 * block, 16), one_second());
  remote_streambuf buffer(memory.region, in, small_blocks);
  EXPECT_EQ(read(buffer, 100), memory.bytes.substr(0, 100));
  memory.pair.owner_process.stop();
  EXPECT_EQ(error_of_read(buffer, 3 * block), errc::timed_out);
  EXPECT_EQ(buffer.error(), errc::timed_out);
  EXPECT_EQ(position(buffer), 100);
  memory.pair.owner_process.resume();
  EXPECT_TRUE(same(read(buffer, 3 * block), memory.bytes.substr(100, 3 * block)));
  EXPECT_FALSE(buffer.error());
}

TEST(StreamFailure, ThrowsFromUnderflowAndGoesOnAfterwards) {
  remote_memory memory(sample_text(block, 17), one_second());
  remote_streambuf buffer(memory.region, in, small_blocks);
  memory.pair.owner_process.stop();
  EXPECT_THROW(buffer.sgetc(), ucx::error);
  EXPECT_THROW(buffer.sbumpc(), ucx::error);
  EXPECT_EQ(position(buffer), 0);
  memory.pair.owner_process.resume();
  EXPECT_EQ(buffer.sbumpc(), int(static_cast<unsigned char>(memory.bytes[0])));
}

TEST(StreamFailure, DeliversWhatArrivedBeforeReadAheadFailed) {
  remote_memory memory(sample_text(8 * block, 18), one_second());
  remote_streambuf buffer(memory.region, in, small_blocks);
  for (std::size_t i = 0; i < 3; ++i) read(buffer, block);
  read(buffer, 10);  // and with it a block
  memory.pair.owner_process.kill();
  memory.settle();
  EXPECT_TRUE(same(read(buffer, block - 10), memory.bytes.substr(3 * block + 10, block - 10)));
  EXPECT_EQ(error_of_read(buffer, 4 * block), errc::connection_reset);
  EXPECT_EQ(position(buffer), std::streamoff(4 * block));
}

TEST(StreamFailure, SaysWhatFailedWhere) {
  remote_memory memory("0123456789", one_second());
  remote_streambuf buffer(memory.region, in);
  memory.pair.owner_process.stop();
  try {
    buffer.sgetc();
    FAIL() << "nothing was thrown";
  } catch (const std::ios_base::failure& failure) {
    EXPECT_EQ(failure.code(), std::errc::timed_out);
    EXPECT_NE(std::string(failure.what()).find("read of 10 bytes at offset 0"), std::string::npos)
        << failure.what();
  }
  memory.pair.owner_process.resume();
}

TEST(StreamFailure, ReportsAFailedWriteOnceAndGoesBackToIt) {
  remote_memory memory(std::string(16 * block, '.'), one_second());
  const std::string text = sample_text(16 * block, 19);
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  EXPECT_EQ(write(buffer, text.substr(0, 1000)), 1000);
  EXPECT_EQ(buffer.pubsync(), 0);
  memory.pair.owner_process.stop();
  std::size_t at = 1000;
  while (at < text.size()) {
    const auto taken = write(buffer, text.substr(at, 5000));
    if (taken < std::streamsize(std::min<std::size_t>(5000, text.size() - at))) break;
    at += static_cast<std::size_t>(taken);
  }
  if (at == text.size()) {
    EXPECT_EQ(buffer.pubsync(), -1);
  }
  EXPECT_EQ(buffer.error(), errc::timed_out);
  EXPECT_EQ(position(buffer), 1000);
  memory.pair.owner_process.resume();
  memory.settle();
  const auto retried = static_cast<std::size_t>(position(buffer));
  EXPECT_EQ(write(buffer, text.substr(retried)), std::streamsize(text.size() - retried));
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_FALSE(buffer.error());
  EXPECT_TRUE(same(memory.bytes, text));
}

TEST(StreamFailure, ReportsWhatTheOwnerRefusedAtFlush) {
  remote_memory memory(std::string(100, '.'));
  remote_streambuf buffer(memory.region, in | out);
  memory.exposed.close();
  EXPECT_EQ(write(buffer, "hello"), 5);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.error(), errc::revoked);
  EXPECT_EQ(position(buffer), 0);
  EXPECT_EQ(buffer.pubsync(), 0);  // reported once; nothing is pending any more
  EXPECT_EQ(error_of_read(buffer, 1), errc::revoked);
}

TEST(StreamFailure, ReportsAFailedWriteAtTheNextReadOrSeek) {
  for (const bool by_seek : {true, false}) {
    simulated_pair_options options;
    options.link.socket_buffer = 1000;  // what the owner does not take stays here
    remote_memory memory(std::string(16 * block, '.'), options);
    remote_streambuf buffer(memory.region, in | out, small_blocks);
    memory.pair.owner_process.stop();
    const std::string text = sample_text(3 * block + 1, 20);
    for (const char c : text) ASSERT_NE(buffer.sputc(c), std::char_traits<char>::eof());
    memory.pair.owner_process.kill();
    memory.settle();
    memory.pair.reader.progress();
    if (by_seek) {
      EXPECT_EQ(buffer.pubseekpos(99), nowhere);
      EXPECT_EQ(buffer.error(), errc::connection_reset);
    } else {
      EXPECT_EQ(error_of_read(buffer, 1), errc::connection_reset);
    }
    EXPECT_EQ(position(buffer), 0);
    EXPECT_EQ(std::streamoff(buffer.pubseekpos(99)), 99);  // reported once
  }
}

TEST(StreamFailure, OfARegionThatWasClosedSaysSo) {
  remote_memory memory(sample_text(2 * block, 21));
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  EXPECT_EQ(read(buffer, 10), memory.bytes.substr(0, 10));
  memory.region.close();
  EXPECT_EQ(read(buffer, 10), memory.bytes.substr(10, 10));  // it has them
  EXPECT_EQ(error_of_read(buffer, block), errc::closed);
  EXPECT_EQ(write(buffer, "x"), 1);
  EXPECT_EQ(buffer.pubsync(), -1);
  EXPECT_EQ(buffer.error(), errc::closed);
}

TEST(StreamFailure, OutlivesTheHandleAndTheConnectionItWasMadeFrom) {
  remote_memory memory("0123456789");
  std::optional<remote_streambuf> buffer;
  {
    remote_region handle = memory.region.share();
    buffer.emplace(handle, in | out);
    const remote_region moved = std::move(handle);
  }
  EXPECT_EQ(read(*buffer, 4), "0123");
}

TEST(StreamFailure, LosesNothingThatIsRetried) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    remote_memory memory(std::string(12 * block, '.'), one_second());
    fake_process& owner = memory.pair.owner_process;
    std::mt19937_64 random(seed);
    const std::string text = sample_text(memory.bytes.size(), seed);
    remote_streambuf buffer(memory.region, in | out, small_blocks);
    std::size_t failures = 0;
    for (std::size_t at = 0;;) {
      if (random() % 5 == 0 && failures < 10) owner.stop();
      const std::size_t length = random() % (random() % 4 == 0 ? 3 * block : 9000);
      const std::string piece = text.substr(at, length);
      const bool taken = write(buffer, piece) == std::streamsize(piece.size());
      const bool last = at + piece.size() == text.size();
      if (taken && !(last && buffer.pubsync() == -1)) {
        at += piece.size();
        if (last) break;
        continue;
      }
      ++failures;
      ASSERT_EQ(buffer.error(), errc::timed_out);
      owner.resume();
      memory.settle();
      at = static_cast<std::size_t>(position(buffer));
    }
    EXPECT_TRUE(same(memory.bytes, text)) << "seed " << seed;
    EXPECT_GE(failures, 1U) << "seed " << seed;

    std::string got;
    buffer.pubseekpos(0);
    while (got.size() < text.size()) {
      if (random() % 5 == 0 && failures < 20) owner.stop();
      try {
        got += read(buffer, random() % (random() % 4 == 0 ? 3 * block : 9000));
      } catch (const ucx::error&) {
        ++failures;
        owner.resume();
        ASSERT_EQ(position(buffer), std::streamoff(got.size()));
      }
    }
    EXPECT_TRUE(same(got, text)) << "seed " << seed;
    owner.resume();
  }
}

TEST(StreamFailure, KeepsWhatIsPendingWhenOnlyTheWaitIsImpossible) {
  remote_memory memory(sample_text(4 * block, 23));
  remote_streambuf buffer(memory.region, in | out, small_blocks);
  write(buffer, "pending");
  std::error_code of_sync;
  std::error_code of_read;
  std::vector<std::byte> eight(8);
  request trigger = memory.region.start_read_at(0, eight);
  trigger.then([&](std::error_code) {
    if (buffer.pubsync() == -1) of_sync = buffer.error();
    buffer.pubseekpos(std::streamoff(2 * block));
    of_read = error_of_read(buffer, 8);
  });
  trigger.wait();
  memory.pair.reader.progress();
  EXPECT_EQ(of_sync, errc::would_deadlock);
  EXPECT_EQ(of_read, errc::would_deadlock);
  EXPECT_EQ(position(buffer), std::streamoff(2 * block));
  EXPECT_EQ(read(buffer, 8), memory.bytes.substr(2 * block, 8));
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(memory.bytes.substr(0, 7), "pending");
}

}  // namespace
}  // namespace ucx::test
