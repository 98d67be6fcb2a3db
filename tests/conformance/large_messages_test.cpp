// Messages and streams of three gibibytes, by the rows C1 to C26 of
// docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/basics/sanitizer.hpp"
#include "support/bytes/pattern.hpp"
#include "support/bytes/sparse_memory.hpp"
#include "support/transports/message_pair.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t mebibytes = effort_of_length(std::size_t{3} << 10U);

// Three gibibytes out of one mebibyte, into one: nobody could have kept a copy.
TEST(ConformanceCLarge, C21_SendsTakeTheCallersMemoryAsItIs) {
  message_pair pair(message_pair_options{});
  const std::vector<std::byte> bytes = pattern(std::size_t{1} << 20U);
  std::vector<std::byte> into(bytes.size());
  const std::vector<std::span<const std::byte>> from(mebibytes, bytes);
  const std::vector<std::span<std::byte>> to(mebibytes, into);
  request receive = pair.receiver().start_receive(1, to);
  request send = pair.sender->start_send(1, from);
  EXPECT_TRUE(pair.until([&] { return receive.done() && send.done(); }, 100s));
  EXPECT_FALSE(receive.error());
  EXPECT_FALSE(send.error());
  EXPECT_EQ(receive.received().length, std::uint64_t{mebibytes} << 20U);
  EXPECT_TRUE(holds_pattern(into));
}

// One span of three gibibytes on each side, of which one page in a thousand was ever written.
class ConformanceCLargeSpan : public testing::TestWithParam<route> {};

TEST_P(ConformanceCLargeSpan, C1_SendsThreeGibibytesOfOneSpan) {
#if defined(UCXIO_WITH_TSAN)
  GTEST_SKIP() << "ThreadSanitizer would need 12 GiB for it";
#endif
  constexpr std::size_t size = std::size_t{3} << 30U;
  if (free_memory() < 2 * size) GTEST_SKIP() << "less than 6 GiB of memory are free";
  const sparse_memory sent(size);
  const sparse_memory landed(size);
  ASSERT_TRUE(sent.usable() && landed.usable());
  constexpr std::size_t places[] = {0, (std::size_t{1} << 31U) - 2000, size - 4000};
  for (const std::size_t place : places) fill_pattern(sent.bytes().subspan(place, 4000), place);
  message_pair_options options;
  options.over = GetParam();
  message_pair pair(options);
  request receive = pair.receiver().start_receive(1, landed.bytes(), {.timeout = 100s});
  request send = pair.sender->start_send(1, sent.bytes(), {.timeout = 100s});
  EXPECT_TRUE(pair.until([&] { return receive.done() && send.done(); }, 100s));
  EXPECT_FALSE(receive.error()) << receive.error().message();
  EXPECT_FALSE(send.error()) << send.error().message();
  EXPECT_EQ(receive.received().length, size);
  std::size_t end = 0;  // of the last place
  for (const std::size_t place : places) {
    EXPECT_TRUE(all_bytes_are(landed.bytes().subspan(end, place - end), std::byte{0})) << place;
    EXPECT_TRUE(holds_pattern(landed.bytes().subspan(place, 4000), place)) << place;
    end = place + 4000;
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceCLargeSpan,
                         testing::Values(route::tcp_by_listener, route::shared_memory),
                         [](const auto& chosen) { return to_string(chosen.param); });

TEST(ConformanceCLarge, C8_StreamsHaveNoEnd) {
  message_pair pair(message_pair_options{});
  endpoint back = pair.back();
  const std::vector<std::byte> bytes = pattern(std::size_t{1} << 20U);
  std::vector<std::byte> into(bytes.size());
  const std::vector<std::span<const std::byte>> from(mebibytes, bytes);
  request send = pair.sender->start_stream_send(from, {.timeout = 100s});
  for (std::size_t mebibyte = 0; mebibyte < from.size(); ++mebibyte) {
    request receive = back.start_stream_receive(into, stream_amount::all);
    ASSERT_TRUE(pair.until([&] { return receive.done(); }));
    ASSERT_FALSE(receive.error()) << mebibyte;
    if (mebibyte % 128 == 127) {
      EXPECT_TRUE(holds_pattern(into)) << mebibyte;
    }
  }
  EXPECT_TRUE(pair.until([&] { return send.done(); }));
  EXPECT_FALSE(send.error());
}

}  // namespace
}  // namespace ucx::test
