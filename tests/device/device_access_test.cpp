// What conformance asks of one-sided access (rows D4, D9 to D16 of
// docs/explanation/comparisons.md), with regions and with the user's memory of every kind.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t region_size = 4 * mib + 4096;
constexpr std::size_t sizes[] = {0, 1, 1024, 2048, mib, 4 * mib};

/// The owner's kind, and the user's.
class DeviceAccess : public testing::TestWithParam<std::tuple<memory_kind, memory_kind>> {
 protected:
  static memory_kind here() { return std::get<1>(GetParam()); }
  bool owned_holds(std::size_t at, std::size_t size, std::uint64_t seed) {
    return holds_pattern(cuda_program::content(owned_.bytes().subspan(at, size)), seed);
  }

  const cuda_program program_;
  connected_pair pair_;
  kind_memory owned_{std::get<0>(GetParam()), region_size};
  memory_region exposed_{*pair_.owner_context, owned_.bytes(), access::read_write};
  remote_region region_ = pair_.open(exposed_);
};

TEST_P(DeviceAccess, IsForReadingOrWritingOnlyWhereThatIsGranted) {
  kind_memory bytes(here(), 8, 2);
  std::error_code ec;
  {
    const memory_region readable(*pair_.owner_context, owned_.bytes(), access::read);
    pair_.open(readable).write_at(0, bytes.bytes(), {}, ec);
    EXPECT_EQ(ec, errc::permission_denied);
  }
  const memory_region writable(*pair_.owner_context, owned_.bytes(), access::write);
  pair_.open(writable).read_at(0, bytes.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_TRUE(bytes.holds(2));
}

TEST_P(DeviceAccess, KeepsWhatItsRunningOperationsNeed) {
  owned_.fill(3);
  kind_memory into(here(), 4 * mib);
  request read = region_.start_read_at(0, into.bytes());
  region_ = pair_.open(exposed_);
  pair_.connection.reset();
  read.wait();
  EXPECT_TRUE(into.holds(3));
}

TEST_P(DeviceAccess, ReadsAndWritesAtOffsets) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    kind_memory from(here(), size + 1, size);
    kind_memory into(here(), size + 1);
    const auto sent = from.bytes().first(size);
    const auto came = into.bytes().first(size);
    request write = region_.start_write_at(7, sent);
    write.wait();
    region_.flush();
    EXPECT_TRUE(owned_holds(7, size, size));
    request read = region_.start_read_at(7, came);
    read.wait();
    EXPECT_TRUE(into.holds(size, size));
    region_.write_at(9, sent);
    region_.flush();
    region_.read_at(9, came);
    EXPECT_TRUE(into.holds(size, size));
  }
}

TEST_P(DeviceAccess, PostsWithoutRequests) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    kind_memory from(here(), size + 1, 4);
    kind_memory into(here(), size + 1);
    region_.post_write_at(0, from.bytes().first(size));
    region_.flush();
    region_.post_read_at(0, into.bytes().first(size));
    region_.flush();
    EXPECT_TRUE(into.holds(4, size));
  }
  kind_memory small(here(), 64, 5);
  for (std::size_t i = 0; i < 300; ++i) region_.post_write_at(i * 64, small.bytes());
  region_.flush();
  for (std::size_t i = 0; i < 300; ++i) ASSERT_TRUE(owned_holds(i * 64, 64, 5)) << i;
}

TEST_P(DeviceAccess, ChecksBounds) {
  kind_memory bytes(here(), 8);
  std::error_code ec;
  region_.read_at(region_size - 7, bytes.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.write_at(~std::uint64_t{0}, bytes.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.post_read_at(region_size, bytes.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.read_batch(
      std::array{read_piece{0, bytes.bytes()}, read_piece{region_size - 1, bytes.bytes()}}, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
}

TEST_P(DeviceAccess, FlushesRegionsConnectionsAndWorkers) {
  kind_memory from(here(), 300'000, 6);
  request writes[3];
  writes[0] = region_.start_write_at(0, from.bytes());
  region_.start_flush().wait();
  EXPECT_TRUE(owned_holds(0, 300'000, 6));
  writes[1] = region_.start_write_at(mib, from.bytes());
  pair_.connection->start_flush().wait();
  EXPECT_TRUE(owned_holds(mib, 300'000, 6));
  writes[2] = region_.start_write_at(2 * mib, from.bytes());
  pair_.reader().start_flush().wait();
  EXPECT_TRUE(owned_holds(2 * mib, 300'000, 6));
}

TEST_P(DeviceAccess, IsOrderedByFences) {
  kind_memory first(here(), 2 * mib, 7);
  kind_memory second(here(), 2 * mib, 8);
  kind_memory into(here(), 2 * mib);
  for (int round = 0; round < 3; ++round) {
    region_.post_write_at(0, first.bytes());
    pair_.connection->fence();
    region_.post_write_at(0, second.bytes());
    pair_.reader().fence();
    region_.post_read_at(0, into.bytes());
    region_.flush();
    ASSERT_TRUE(owned_holds(0, 2 * mib, 8));
    ASSERT_TRUE(into.holds(8));
  }
}

TEST_P(DeviceAccess, MayBeABatch) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{40'000}}) {
    SCOPED_TRACE(size);
    constexpr std::size_t count = 20;
    kind_memory from(here(), size * count, 9);
    kind_memory into(here(), size * count);
    std::vector<write_piece> writes;
    std::vector<read_piece> reads;
    for (std::size_t i = 0; i < count; ++i) {
      writes.push_back({i * (size + 100), from.bytes().subspan(i * size, size)});
      reads.push_back({i * (size + 100), into.bytes().subspan(i * size, size)});
    }
    region_.start_write_batch(writes).wait();
    region_.flush();
    region_.start_read_batch(reads).wait();
    EXPECT_TRUE(into.holds(9));
  }
}

TEST_P(DeviceAccess, TellsOwnersBehindTheData) {
  std::atomic<int> right{0};
  std::atomic<int> heard{0};
  exposed_.on_notify([&](const notification& said) {
    std::vector<std::byte> seen(std::size_t{1} << said.value);
    copy_memory(seen.data(), owned_.bytes().data(), seen.size());
    if (holds_pattern(seen, said.value)) ++right;
    ++heard;
  });
  for (std::uint64_t power = 0; power <= 22; power += 11) {
    kind_memory from(here(), std::size_t{1} << power, power);
    region_.post_write_at(0, from.bytes());
    region_.notify(power);
    EXPECT_TRUE(pair_.drive_until([&] { return heard == static_cast<int>(power / 11) + 1; }));
  }
  EXPECT_EQ(right, 3);
  exposed_.on_notify({});
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceAccess,
                         testing::Combine(testing::ValuesIn(every_kind),
                                          testing::ValuesIn(every_kind)),
                         [](const auto& chosen) {
                           return "of_" + std::string(to_string(std::get<0>(chosen.param))) +
                                  "_by_" + std::string(to_string(std::get<1>(chosen.param)));
                         });

}  // namespace
}  // namespace ucx::test
