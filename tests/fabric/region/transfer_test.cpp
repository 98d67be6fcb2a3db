// Reading, writing and flushing: the same over every route and in every progress mode.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/effort.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::array<std::size_t, 10> sizes{0,        1,       8,   4095,    4096,
                                            64 * kib, mib - 1, mib, mib + 1, 9 * mib};
constexpr std::size_t region_size = 9 * mib + 4096;

class Transfer : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    if (const std::string why = pair_.why_not_forced(); !why.empty()) GTEST_SKIP() << why;
  }

  connected_pair pair_{GetParam()};
};

TEST_P(Transfer, ReadsWhatTheOwnerHas) {
  memory_region owned = pair_.allocate(region_size, access::read);
  fill_pattern(owned.bytes());
  remote_region region = pair_.open(owned);
  for (const std::size_t size : sizes) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{37}, region_size - size}) {
      SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(offset));
      std::vector<std::byte> into(size + 2, std::byte{0xEE});
      region.read_at(offset, std::span(into).subspan(1, size));
      EXPECT_TRUE(holds_pattern(std::span(into).subspan(1, size), 0, offset));
      EXPECT_EQ(into.front(), std::byte{0xEE});
      EXPECT_EQ(into.back(), std::byte{0xEE});
    }
  }
}

TEST_P(Transfer, ReadsCheckedBytesWhateverTheWay) {
  memory_region owned = pair_.allocate(region_size, access::read);
  fill_pattern(owned.bytes());
  remote_region region = pair_.open(owned);
  if (!includes(pair_.reader_context().features(), feature::am)) {
    std::vector<std::byte> into(1);
    std::error_code ec;
    region.read_at(37, into, {.verify = true}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    return;
  }
  for (const std::size_t size : sizes) {
    std::vector<std::byte> into(size);
    region.read_at(37, into, {.verify = true});
    EXPECT_TRUE(holds_pattern(into, 0, 37)) << size;
  }
  istream in(region, {.verify = true});
  std::vector<char> all(region_size);
  in.read(all.data(), static_cast<std::streamsize>(all.size()));
  ASSERT_TRUE(in);
  EXPECT_TRUE(holds_pattern(std::as_bytes(std::span(all))));
}

TEST_P(Transfer, ShowsWritesToTheOwnerAfterFlush) {
  memory_region owned = pair_.allocate(region_size);
  remote_region region = pair_.open(owned);
  const std::span<std::byte> all = owned.bytes();
  std::fill(all.begin(), all.end(), std::byte{0});
  constexpr std::size_t around = effort(region_size);
  std::uint64_t seed = 0;
  for (const std::size_t size : sizes) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{37}, region_size - size}) {
      SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(offset));
      const std::vector<std::byte> from = pattern(size, ++seed);
      region.write_at(offset, from);
      region.flush();
      const auto at = static_cast<std::size_t>(offset);
      const std::span<std::byte> written = all.subspan(at, size);
      const std::span<std::byte> behind = all.subspan(at + size);
      EXPECT_TRUE(holds_pattern(written, seed));
      EXPECT_TRUE(all_bytes_are(all.first(at).last(std::min(at, around)), std::byte{0}));
      EXPECT_TRUE(all_bytes_are(behind.first(std::min(behind.size(), around)), std::byte{0}));
      std::fill(written.begin(), written.end(), std::byte{0});
      EXPECT_EQ(region.first_unconfirmed(), std::nullopt);
    }
  }
}

TEST_P(Transfer, ReadsBackWhatItWrote) {
  memory_region owned = pair_.allocate(2 * mib);
  remote_region region = pair_.open(owned);
  std::mt19937 random(7);
  std::vector<std::byte> expected(owned.size());
  for (int round = 0; round < 100; ++round) {
    const std::size_t size = random() % (round % 10 == 0 ? mib : 300) + 1;
    const std::uint64_t offset = random() % (owned.size() - size);
    const std::vector<std::byte> from = pattern(size, random());
    std::copy(from.begin(), from.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    region.write_at(offset, from);
    region.flush();
    std::vector<std::byte> back(size);
    region.read_at(offset, back);
    ASSERT_EQ(back, from) << "round " << round;
  }
  std::vector<std::byte> all(owned.size());
  region.read_at(0, all);
  EXPECT_TRUE(all == expected);
}

TEST_P(Transfer, CompletesTwoThousandReadsInAnyOrder) {
  constexpr std::size_t count = 2000;
  memory_region owned = pair_.allocate(4 * mib, access::read);
  fill_pattern(owned.bytes());
  remote_region region = pair_.open(owned);
  std::mt19937 random(11);
  std::vector<std::uint64_t> offsets(count);
  std::vector<std::vector<std::byte>> into(count);
  std::vector<request> reads;
  for (std::size_t i = 0; i < count; ++i) {
    into[i].resize(random() % 3000 + 1);
    offsets[i] = random() % (owned.size() - into[i].size());
    reads.push_back(region.start_read_at(offsets[i], into[i]));
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    reads[i].wait();
    ASSERT_TRUE(holds_pattern(into[i], 0, offsets[i])) << "read " << i;
  }
}

TEST_P(Transfer, CompletesTwoThousandWritesBeforeAFlushEnds) {
  constexpr std::size_t count = 2000;
  constexpr std::size_t size = 1500;
  memory_region owned = pair_.allocate(count * size, access::write);
  remote_region region = pair_.open(owned);
  const std::vector<std::byte> from = pattern(count * size, 3);
  std::vector<request> writes;
  for (std::size_t i = 0; i < count; ++i) {
    writes.push_back(region.start_write_at(i * size, std::span(from).subspan(i * size, size)));
  }
  region.flush();
  EXPECT_TRUE(holds_pattern(owned.bytes(), 3));
  for (request& write : writes) write.wait();
}

TEST_P(Transfer, RefusesWhatReachesOutsideBeforeSendingAnything) {
  memory_region owned = pair_.allocate(1000);
  remote_region region = pair_.open(owned);
  std::vector<std::byte> bytes(16);
  constexpr std::uint64_t last = ~std::uint64_t{0};
  for (const std::uint64_t offset :
       {std::uint64_t{985}, std::uint64_t{1000}, std::uint64_t{1001}, last - 15, last - 7, last}) {
    SCOPED_TRACE(offset);
    std::error_code ec;
    region.read_at(offset, bytes, {}, ec);
    EXPECT_EQ(ec, errc::out_of_range);
    region.write_at(offset, bytes, {}, ec);
    EXPECT_EQ(ec, errc::out_of_range);
  }
  region.read_at(1000, {});
  region.write_at(1000, {});
  EXPECT_THROW(region.read_at(1001, {}), ucx::error);
  region.read_at(984, bytes);
  region.flush();
}

TEST_P(Transfer, RefusesAccessWithoutTheRightBeforeSendingAnything) {
  memory_region readable = pair_.allocate(64, access::read);
  memory_region writable = pair_.allocate(64, access::write);
  remote_region reads = pair_.open(readable);
  remote_region writes = pair_.open(writable);
  std::vector<std::byte> bytes(8, std::byte{0xAA});
  std::error_code ec;
  reads.write_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writes.read_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  reads.flush();
  EXPECT_TRUE(all_bytes_are(readable.bytes(), std::byte{0}));
}

TEST_P(Transfer, ClosesInOrderAndReportsNothing) {
  memory_region owned = pair_.allocate(mib);
  remote_region region = pair_.open(owned);
  const std::vector<std::byte> from = pattern(mib);
  region.write_at(0, from);
  pair_.connection->close();
  EXPECT_TRUE(holds_pattern(owned.bytes())) << "close() flushes";
  pair_.connection->close();
  EXPECT_EQ(pair_.connection->status(), errc::closed);
  EXPECT_EQ(region.status(), errc::closed);
  std::error_code ec;
  region.write_at(0, from, {}, ec);
  EXPECT_EQ(ec, errc::closed);
}

INSTANTIATE_TEST_SUITE_P(Every, Transfer, testing::ValuesIn(every_pair()), name_of_pair);

}  // namespace
}  // namespace ucx::test
