// What the other tests here rely on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
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

constexpr std::size_t fake_granularity = std::size_t{2} << 20U;

TEST(FakeCuda, MapsWhatProgramsReserveAndAllow) {
  const cuda_program program;
  std::vector<std::byte> host(10);
  const std::uint64_t to = cuda_program::address(host);
  const fake_cuda_properties closed{1, 0, 1, 0, nullptr, {}};
  std::uint64_t handle = 0;
  std::uint64_t begin = 0;
  EXPECT_EQ(cuMemCreate(&handle, fake_granularity - 1, &closed, 0), 1);
  ASSERT_EQ(cuMemCreate(&handle, fake_granularity, &closed, 0), 0);
  ASSERT_EQ(cuMemAddressReserve(&begin, 2 * fake_granularity, 0, 0, 0), 0);
  EXPECT_EQ(cuMemcpy(to, begin, 10), 1);  // nothing is mapped
  EXPECT_EQ(cuMemMap(begin, fake_granularity, 1, handle, 0), 1);
  EXPECT_EQ(cuMemMap(begin, 2 * fake_granularity, 0, handle, 0), 1);
  ASSERT_EQ(cuMemMap(begin, fake_granularity, 0, handle, 0), 0);
  EXPECT_EQ(cuMemMap(begin, fake_granularity, 0, handle, 0), 1);
  EXPECT_EQ(cuMemcpy(to, begin, 10), 1);  // no device may
  fake_cuda_access wanted{1, 0, 1};
  EXPECT_EQ(cuMemSetAccess(begin, 2 * fake_granularity, &wanted, 1), 1);
  ASSERT_EQ(cuMemSetAccess(begin, fake_granularity, &wanted, 1), 0);
  EXPECT_EQ(cuMemcpy(to, begin, 10), 0);
  EXPECT_EQ(cuMemcpy(begin, to, 10), 1);  // for reading alone
  EXPECT_EQ(cuMemcpy(to, begin + fake_granularity - 1, 2), 1);
  int file = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&file, handle, 1, 0), 1);
  ASSERT_EQ(cuMemRelease(handle), 0);
  EXPECT_EQ(cuMemcpy(to, begin, 10), 0);
  EXPECT_EQ(cuMemAddressFree(begin, 2 * fake_granularity), 1);
  EXPECT_EQ(cuMemUnmap(begin, fake_granularity / 2), 1);
  ASSERT_EQ(cuMemUnmap(begin, fake_granularity), 0);
  EXPECT_EQ(fake_cuda_places(), 0U);
  EXPECT_EQ(cuMemAddressFree(begin, fake_granularity), 1);
  EXPECT_EQ(cuMemAddressFree(begin, 2 * fake_granularity), 0);
  EXPECT_EQ(cuMemcpy(to, begin, 10), 1);
}

TEST(FakeCuda, ImportsOnlyTheDescriptorsThatItGaveOut) {
  const cuda_program program;
  const fake_cuda_properties shared{1, 1, 1, 0, nullptr, {}};
  std::uint64_t handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, fake_granularity, &shared, 0), 0);
  int file = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&file, handle, 1, 0), 0);
  const int again = ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC);
  const int duplicate = ::dup(file);
  const auto import = [](int number) {
    std::uint64_t made = 0;
    const int result = cuMemImportFromShareableHandle(
        &made, reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)), 1);
    if (result == 0) {
      EXPECT_EQ(cuMemRelease(made), 0);
    }
    return result;
  };
  EXPECT_EQ(import(file), 0);
  EXPECT_EQ(import(duplicate), 0);
  EXPECT_EQ(import(again), 1);
  for (const int each : {file, again, duplicate}) ::close(each);
  EXPECT_EQ(cuMemRelease(handle), 0);
  EXPECT_EQ(fake_cuda_handles(), 0U);
}

}  // namespace
}  // namespace ucx::test
