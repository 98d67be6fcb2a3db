// What the other tests here rely on.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"

namespace ucx::test {
namespace {

TEST(FakeCudaDeathTest, DeviceMemoryFaultsWhenTouched) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // copies have a thread of their own
  const cuda_program program;
  volatile std::byte* const bytes = cuda_program::allocate(100).data();
  EXPECT_DEATH(static_cast<void>(*bytes), "");
  EXPECT_DEATH(*bytes = std::byte{1}, "");
}

TEST(FakeCuda, RefusesWhatIsOutOfBoundsFreedOrWithoutContext) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  std::vector<std::byte> host(200);
  const std::uint64_t to = cuda_program::address(host);
  EXPECT_EQ(cuMemcpy(to, cuda_program::address(memory), 101), 1);
  EXPECT_EQ(cuMemcpy(to, cuda_program::address(memory) + 99, 1), 0);
  CUctx_st* current = nullptr;
  ASSERT_EQ(cuCtxPopCurrent_v2(&current), 0);
  EXPECT_EQ(cuMemcpy(to, cuda_program::address(memory), 1), 201);
  ASSERT_EQ(cuCtxPushCurrent_v2(current), 0);
  cuda_program::free(memory);
  EXPECT_EQ(cuMemcpy(to, cuda_program::address(memory), 1), 1);
  EXPECT_EQ(cuMemFree_v2(cuda_program::address(memory)), 1);
}

TEST(FakeCuda, RunsStreamsInAnOrderFromItsSeed) {
  std::set<bool> first_was_first;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const cuda_program program(1, seed);
    const auto memory = cuda_program::allocate(1);
    CUstream_st* one = nullptr;
    CUstream_st* two = nullptr;
    ASSERT_EQ(cuStreamCreate(&one, 0), 0);
    ASSERT_EQ(cuStreamCreate(&two, 0), 0);
    fake_cuda_hold_copies(1);
    ASSERT_EQ(cuMemsetD8Async(cuda_program::address(memory), 1, 1, one), 0);
    ASSERT_EQ(cuMemsetD8Async(cuda_program::address(memory), 2, 1, two), 0);
    fake_cuda_hold_copies(0);
    ASSERT_EQ(cuStreamSynchronize(one), 0);
    ASSERT_EQ(cuStreamSynchronize(two), 0);
    first_was_first.insert(cuda_program::content(memory)[0] == std::byte{2});
  }
  EXPECT_EQ(first_was_first.size(), 2U);
}

TEST(FakeCuda, EndsTheStreamsOfAContextWithIt) {
  const cuda_program program;
  CUctx_st* own = nullptr;
  CUstream_st* stream = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  ASSERT_EQ(cuStreamCreate(&stream, 0), 0);
  EXPECT_EQ(fake_cuda_streams(), 1U);
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  EXPECT_EQ(fake_cuda_streams(), 0U);
  EXPECT_NE(cuStreamSynchronize(stream), 0);
}

TEST(FakeCuda, CountsWhatItCopies) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  cuda_program::put(memory, pattern(100));
  EXPECT_TRUE(holds_pattern(cuda_program::content(memory)));
  EXPECT_EQ(fake_cuda_copies(fake_cuda_to_device), 1U);
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_to_device), 100U);
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_from_device), 100U);
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_within_host), 0U);
}

TEST(FakeCuda, SharesMemoryOfADeviceWithOtherProcessesOnly) {
  const cuda_program program;
  const auto memory = cuda_program::allocate_pattern(100, 1);
  fake_cuda_handle shared;
  std::uint64_t opened = 0;
  ASSERT_EQ(cuIpcGetMemHandle(&shared, cuda_program::address(memory)), 0);
  EXPECT_TRUE(holds_pattern(cuda_program::content(memory), 1));  // which moved to a file
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&opened, shared, 1), 201);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&opened, shared, 0), 1);
  shared.bytes[0] ^= std::byte{1};
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&opened, shared, 1), 1);
  EXPECT_EQ(cuIpcCloseMemHandle(cuda_program::address(memory)), 1);
  const auto managed = cuda_program::allocate_managed(100);
  EXPECT_EQ(cuIpcGetMemHandle(&shared, cuda_program::address(managed)), 1);
  EXPECT_EQ(fake_cuda_opened(), 0U);
  cuda_program::free(memory);
}

}  // namespace
}  // namespace ucx::test
