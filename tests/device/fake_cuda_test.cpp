// What the other tests here rely on.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/fake_cuda/cuda_program.hpp"
#include "support/pattern.hpp"

namespace ucx::test {
namespace {

TEST(FakeCudaDeathTest, MemoryOfADeviceFaultsWhenTheProcessorTouchesIt) {
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

}  // namespace
}  // namespace ucx::test
