// Regions beyond 4 GiB, in sparse memory of the test's own.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/bytes/sparse_memory.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

class LargeRegion : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    if (!memory_.usable()) GTEST_SKIP() << "5 GiB of address space can not be had here";
  }

  sparse_memory memory_{5 * gib};
  connected_pair pair_{GetParam()};
};

TEST_P(LargeRegion, IsReadBeyondFourGibibytes) {
  memory_region owned(*pair_.owner_context, memory_.bytes(), access::read);
  remote_region region = pair_.open(owned);
  ASSERT_EQ(region.size(), 5 * gib);
  const std::uint64_t line = 4 * gib;
  fill_pattern(memory_.bytes().subspan(line - 100'000, 200'000), 1);
  fill_pattern(memory_.bytes().subspan(4 * gib + gib / 2, 8), 2);
  fill_pattern(memory_.bytes().last(16), 3);

  std::vector<std::byte> across(200'000);
  region.read_at(line - 100'000, across);
  EXPECT_TRUE(holds_pattern(across, 1));
  std::vector<std::byte> into(8);
  region.read_at(4 * gib + gib / 2, into);
  EXPECT_TRUE(holds_pattern(into, 2));
  into.resize(16);
  region.read_at(5 * gib - 16, into);
  EXPECT_TRUE(holds_pattern(into, 3));
  EXPECT_THROW(region.read_at(5 * gib - 15, into), ucx::error);
}

TEST_P(LargeRegion, IsWrittenBeyondFourGibibytes) {
  memory_region owned(*pair_.owner_context, memory_.bytes(), access::read_write);
  remote_region region = pair_.open(owned);
  const std::uint64_t line = 4 * gib;
  region.write_at(line - 100'000, pattern(200'000, 1));
  region.write_at(4 * gib + gib / 2, pattern(8, 2));
  region.write_at(5 * gib - 16, pattern(16, 3));
  region.flush();
  EXPECT_TRUE(holds_pattern(memory_.bytes().subspan(line - 100'000, 200'000), 1));
  EXPECT_TRUE(holds_pattern(memory_.bytes().subspan(4 * gib + gib / 2, 8), 2));
  EXPECT_TRUE(holds_pattern(memory_.bytes().last(16), 3));
  // The same offsets less 4 GiB, where a cut-off offset would have landed.
  EXPECT_TRUE(all_bytes_are(memory_.bytes().first(100'000), std::byte{0}));
  EXPECT_TRUE(all_bytes_are(memory_.bytes().subspan(gib / 2, 8), std::byte{0}));
}

INSTANTIATE_TEST_SUITE_P(Messages, LargeRegion, testing::ValuesIn(message_pairs()), name_of_pair);

}  // namespace
}  // namespace ucx::test
