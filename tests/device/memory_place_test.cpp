#include "ucx/memory_place.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "support/fake_cuda/cuda_program.hpp"

namespace ucx::test {
namespace {

TEST(MemoryPlace, IsTheHostsWithoutAWord) { EXPECT_EQ(memory_place(), place_of(nullptr)); }

TEST(MemoryPlace, TellsKindAndDeviceOfEveryAddressInside) {
  const cuda_program program(2, 1, 1);
  const auto device = cuda_program::allocate(1000);
  const auto managed = cuda_program::allocate_managed(1000);
  const auto pinned = cuda_program::allocate_pinned(1000);
  cuda_program::use(0);
  const auto other = cuda_program::allocate(1000);
  const std::vector<std::byte> host(1000);
  for (const std::size_t at : {0U, 500U, 999U}) {
    EXPECT_EQ(place_of(&device[at]), (memory_place{memory_kind::cuda, 1}));
    EXPECT_EQ(place_of(&managed[at]), (memory_place{memory_kind::cuda_managed, 1}));
    EXPECT_EQ(place_of(&pinned[at]), (memory_place{memory_kind::cuda_pinned, 1}));
    EXPECT_EQ(place_of(&other[at]), (memory_place{memory_kind::cuda, 0}));
    EXPECT_EQ(place_of(&host[at]), memory_place());
  }
}

TEST(MemoryPlace, IsToldOnThreadsThatHaveNoContext) {
  const cuda_program program;
  const auto device = cuda_program::allocate(10);
  memory_place told;
  std::thread([&] { told = place_of(device.data()); }).join();
  EXPECT_EQ(told, (memory_place{memory_kind::cuda, 0}));
}

TEST(MemoryPlace, IsTheHostsAndDoesNotInitialiseCuda) {
  fake_cuda_reset(1, 1);
  const std::vector<std::byte> host(10);
  EXPECT_EQ(place_of(host.data()), memory_place());
  EXPECT_EQ(fake_cuda_calls("cuInit"), 0U);
}

TEST(MemoryPlace, IsNobodysOnceTheMemoryIsFreed) {
  const cuda_program program;
  const auto device = cuda_program::allocate(10);
  cuda_program::free(device);
  EXPECT_EQ(place_of(device.data()), (memory_place{memory_kind::other, -1}));
}

}  // namespace
}  // namespace ucx::test
