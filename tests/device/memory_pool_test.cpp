#include "support/bytes/byte_sizes.hpp"
#include "ucx/memory_resources.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "support/fake_cuda/cuda_program.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

class MemoryPool : public testing::TestWithParam<memory_kind> {
 protected:
  memory_pool make(std::size_t bound = 256 * mib) {
    return memory_pool(memory_place{GetParam(), GetParam() == memory_kind::host ? -1 : 1},
                       {.max_size = bound});
  }
  const cuda_program program_;
};

TEST_P(MemoryPool, AllocatesMemoryOfItsKindAndDevice) {
  memory_pool pool = make();
  EXPECT_EQ(pool.place().kind, GetParam());
  void* const block = pool.allocate(1000);
  EXPECT_EQ(place_of(block), pool.place());
  EXPECT_EQ(place_of(static_cast<std::byte*>(block) + 999), pool.place());
  pool.deallocate(block, 1000);
}

TEST_P(MemoryPool, UsesBlocksAgain) {
  memory_pool pool = make();
  void* const first = pool.allocate(100'000);
  pool.deallocate(first, 100'000);
  EXPECT_EQ(pool.allocate(99'000), first);
  EXPECT_NE(pool.allocate(99'000), first);
}

TEST_P(MemoryPool, TellsItsUse) {
  memory_pool pool = make(mib);
  EXPECT_EQ(pool.usage().max_size, mib);
  EXPECT_EQ(pool.usage().held, 0U);
  void* const block = pool.allocate(100'000);
  EXPECT_GE(pool.usage().in_use, 100'000U);
  EXPECT_LE(pool.usage().in_use, 112'500U);
  EXPECT_EQ(pool.usage().held, pool.usage().in_use);
  pool.deallocate(block, 100'000);
  EXPECT_EQ(pool.usage().in_use, 0U);
  EXPECT_GE(pool.usage().held, 100'000U);
  pool.release_unused();
  EXPECT_EQ(pool.usage().held, 0U);
  EXPECT_EQ(fake_cuda_allocated(), 0U);
}

TEST_P(MemoryPool, HoldsNoMoreThanItsBound) {
  memory_pool pool = make(mib);
  EXPECT_THROW(static_cast<void>(pool.allocate(mib + 1)), std::bad_alloc);
  const volatile std::size_t most = SIZE_MAX;  // the compiler would warn of it
  EXPECT_THROW(static_cast<void>(pool.allocate(most)), std::bad_alloc);
  void* const half = pool.allocate(mib / 2);
  void* const other = pool.allocate(mib / 2);
  EXPECT_THROW(static_cast<void>(pool.allocate(1)), std::bad_alloc);
  pool.deallocate(half, mib / 2);
  // What waits to be used again makes room for other sizes.
  void* const small = pool.allocate(mib / 4);
  EXPECT_LE(pool.usage().held, mib);
  pool.deallocate(small, mib / 4);
  pool.deallocate(other, mib / 2);
}

TEST_P(MemoryPool, AlignsAsAskedFor) {
  memory_pool pool = make();
  for (const std::size_t alignment : {1U, 16U, 256U, 4096U, 65536U}) {
    void* const block = pool.allocate(100, alignment);
    EXPECT_TRUE(is_aligned(block, alignment)) << alignment;
    EXPECT_EQ(place_of(block), pool.place());
    EXPECT_EQ(place_of(static_cast<std::byte*>(block) + 99), pool.place());
    pool.deallocate(block, 100, alignment);
  }
  EXPECT_EQ(pool.usage().in_use, 0U);
}

TEST_P(MemoryPool, GivesEveryUserBytesOfItsOwn) {
  memory_pool pool = make(8 * mib);
  std::mt19937 random(7);
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() > 50 || (!blocks.empty() && random() % 2 == 0)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      pool.deallocate(blocks.back().first, blocks.back().second);
      blocks.pop_back();
      continue;
    }
    const std::size_t size = 1 + random() % 100'000;
    auto* const made = static_cast<std::byte*>(pool.allocate(size));
    for (const auto& [begin, length] : blocks) {
      ASSERT_TRUE(made + size <= begin || begin + length <= made);
    }
    blocks.emplace_back(made, size);
  }
  for (const auto& [begin, length] : blocks) pool.deallocate(begin, length);
  EXPECT_EQ(pool.usage().in_use, 0U);
  EXPECT_LE(pool.usage().held, 8 * mib);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryPool,
                         testing::Values(memory_kind::host, memory_kind::cuda,
                                         memory_kind::cuda_managed, memory_kind::cuda_pinned),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST(DevicePool, GivesItsMemoryBackWhenItEnds) {
  const cuda_program program;
  {
    memory_pool pool(memory_place{memory_kind::cuda, 0});
    pool.deallocate(pool.allocate(1000), 1000);
    EXPECT_GT(fake_cuda_allocated(), 0U);
  }
  EXPECT_EQ(fake_cuda_allocated(), 0U);
}

TEST(DevicePool, GivesUpUnusedBuffersFirst) {
  const cuda_program program;
  memory_pool pool(memory_place{memory_kind::cuda, 0}, {.max_size = 2 * fake_cuda_device_size});
  EXPECT_THROW(static_cast<void>(pool.allocate(fake_cuda_device_size + mib)), std::bad_alloc);
  constexpr std::size_t most = fake_cuda_device_size / 4 * 3;
  pool.deallocate(pool.allocate(most), most);
  void* const block = pool.allocate(fake_cuda_device_size / 2);
  EXPECT_EQ(fake_cuda_allocated(), fake_cuda_device_size / 2);
  pool.deallocate(block, fake_cuda_device_size / 2);
}

TEST(HostPool, ForgetsWhatItHasGivenBack) {
  memory_pool pool(memory_place{}, {.max_size = 512 * mib});
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(pool.allocate(100));
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::size_t size = 1000; size < std::size_t{64} << 20U; size += size / 8) {
    pool.deallocate(pool.allocate(size), size);
  }
  pool.release_unused();
  EXPECT_LT(::mallinfo2().uordblks, before + 100'000);
  for (void* const each : blocks) pool.deallocate(each, 100);
}

TEST(DevicePool, WorksOnThreadsAndDevicesThatAreNotCurrent) {
  const cuda_program program(2, 1, 0);
  memory_pool pool(memory_place{memory_kind::cuda, 1});
  void* const block = pool.allocate(10);
  EXPECT_EQ(place_of(block).device, 1);
  EXPECT_EQ(fake_cuda_current(), 1U);
  pool.deallocate(block, 10);
}

TEST(DevicePool, ThatCanNotBeSaysWhy) {
  const cuda_program program(1);
  std::error_code ec;
  const memory_pool elsewhere(memory_place{memory_kind::cuda, 1}, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const memory_pool unknown(memory_place{memory_kind::rocm, 0}, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_THROW(memory_pool(memory_place{memory_kind::other, 0}), error);
  fake_cuda_fail("cuDevicePrimaryCtxRetain", 0, 1, 2);
  const memory_pool full(memory_place{memory_kind::cuda, 0}, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
}

TEST(DevicePool, DriverThatRefusesIsOutOfMemory) {
  const cuda_program program;
  for (const auto& [kind, call] : {std::pair{memory_kind::cuda, "cuMemAlloc"},
                                   std::pair{memory_kind::cuda_managed, "cuMemAllocManaged"},
                                   std::pair{memory_kind::cuda_pinned, "cuMemHostAlloc"}}) {
    memory_pool pool(memory_place{kind, 0});
    fake_cuda_fail(call, 0, 1, 2);
    EXPECT_THROW(static_cast<void>(pool.allocate(10)), std::bad_alloc) << call;
    EXPECT_EQ(pool.usage().held, 0U);
    pool.deallocate(pool.allocate(10), 10);
  }
}

TEST(RegisteredPool, RegistersItsBlocksWhileItHoldsThem) {
  simulated_pair pair;
  memory_pool pool(pair.owner_context);
  EXPECT_EQ(pool.place(), memory_place());
  void* const block = pool.allocate(100'000);
  std::memset(block, 1, 100'000);
  pool.deallocate(block, 100'000);
  EXPECT_EQ(pool.allocate(100'000), block);
  pool.deallocate(block, 100'000);
}

TEST(RegisteredPool, NeedsAContextThatRegistersMemory) {
  simulated_pair pair;
  std::error_code ec;
  context moved = std::move(pair.owner_context);
  const memory_pool none(pair.owner_context, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  pair.owner_context = std::move(moved);
  context_options options;
  options.features = feature::am;
  const context without(options);
  const memory_pool other(without, {}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
}

}  // namespace
}  // namespace ucx::test
