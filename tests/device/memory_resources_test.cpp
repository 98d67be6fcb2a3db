#include "ucx/memory_resources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

TEST(MemoryResources, HaveTheHostsFromTheBeginning) {
  memory_resources known;
  EXPECT_EQ(known.find(memory_kind::host), std::pmr::new_delete_resource());
  EXPECT_EQ(known.find(memory_kind::rocm), nullptr);
  std::pmr::monotonic_buffer_resource first;
  std::pmr::monotonic_buffer_resource second;
  known.add(memory_kind::rocm, first);
  EXPECT_EQ(known.find(memory_kind::rocm), &first);
  EXPECT_EQ(known.find(memory_kind::other), nullptr);
  known.add(memory_kind::rocm, second);
  EXPECT_EQ(known.find(memory_kind::rocm), &second);
}

TEST(MemoryResources, CopyBetweenTheHostAndADeviceAndWithinIt) {
  const cuda_program program;
  const memory_resources known;
  const auto device = cuda_program::allocate(1000);
  const auto other = cuda_program::allocate_managed(1000);
  const std::vector<std::byte> from = pattern(1000);
  std::vector<std::byte> into(1000);
  known.copy(device.data(), memory_kind::cuda, from.data(), memory_kind::host, 1000);
  EXPECT_TRUE(holds_pattern(cuda_program::content(device)));
  known.copy(other.data(), memory_kind::cuda_managed, device.data(), memory_kind::cuda, 1000);
  known.copy(into.data(), memory_kind::host, other.data(), memory_kind::cuda_managed, 1000);
  EXPECT_TRUE(holds_pattern(into));
  std::vector<std::byte> last(1000);
  known.copy(last.data(), memory_kind::cuda_pinned, into.data(), memory_kind::host, 1000);
  EXPECT_TRUE(holds_pattern(last));
}

TEST(DevicePattern, IsFilledAndFoundInPieces) {
  const cuda_program program;
  const std::size_t size = (std::size_t{2} << 20U) + 1000;
  const auto device = cuda_program::allocate(size);
  ucx::fill_pattern(device, 5, 100);
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 5, 100));
  EXPECT_FALSE(find_pattern_mismatch(device, 5, 100));
  std::vector<std::byte> changed = pattern(size, 6);
  for (const std::size_t wrong : {size - 1, std::size_t{1} << 20U, std::size_t{17}}) {
    changed[wrong] ^= std::byte{0x80};
    cuda_program::put(device, changed);
    EXPECT_EQ(find_pattern_mismatch(device, 6), wrong);
  }
}

TEST(DevicePattern, IsRefusedWhereThePlaceIsUnknown) {
  const cuda_program program;
  const auto device = cuda_program::allocate(1000);
  fake_cuda_fail("cuPointerGetAttributes", 0, 1 << 20, 719);
  std::error_code ec;
  ucx::fill_pattern(device, 1, 0, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_FALSE(find_pattern_mismatch(device, 1, 0, {}, ec));
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_THROW(find_pattern_mismatch(device), error);
  fake_cuda_fail("cuPointerGetAttributes", 0, 0, 0);
}

TEST(MemoryResources, CopyByTheTargetsKindOrElseTheSources) {
  memory_resources known;
  std::pmr::monotonic_buffer_resource memory;
  int calls = 0;
  known.add(memory_kind::rocm, memory, [&](void* into, const void* from, std::size_t size) {
    ++calls;
    std::memcpy(into, from, size);
    return std::error_code();
  });
  known.add(memory_kind::other, memory,
            [](void*, const void*, std::size_t) { return make_error_code(errc::io_error); });
  const std::vector<std::byte> from = pattern(10);
  std::vector<std::byte> into(10);
  known.copy(into.data(), memory_kind::rocm, from.data(), memory_kind::host, 10);
  EXPECT_TRUE(holds_pattern(into));
  known.copy(into.data(), memory_kind::host, from.data(), memory_kind::rocm, 10);
  EXPECT_EQ(calls, 2);
  std::error_code ec;
  known.copy(into.data(), memory_kind::other, from.data(), memory_kind::rocm, 10, ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_EQ(calls, 2);
}

TEST(MemoryResources, RefuseWhatNobodyCanCopy) {
  const cuda_program program;
  const memory_resources known;
  const auto device = cuda_program::allocate(10);
  std::vector<std::byte> host(10);
  std::error_code ec;
  known.copy(host.data(), memory_kind::host, host.data(), memory_kind::rocm, 10, ec);
  EXPECT_EQ(ec, errc::not_supported);
  known.copy(host.data(), memory_kind::cuda, device.data(), memory_kind::cuda, 10, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  known.copy(host.data(), memory_kind::host, device.data(), memory_kind::cuda, 11, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  fake_cuda_fail("copy", 0, 1, 719);
  known.copy(host.data(), memory_kind::host, device.data(), memory_kind::cuda, 10, ec);
  EXPECT_EQ(ec, errc::io_error);
  try {
    known.copy(host.data(), memory_kind::host, device.data(), memory_kind::rocm, 10);
    FAIL() << "nobody copies that";
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), testing::HasSubstr("copying 10 bytes of rocm memory"));
  }
}

}  // namespace
}  // namespace ucx::test
