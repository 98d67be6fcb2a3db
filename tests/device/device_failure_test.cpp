// Each call of the driver's that a transfer makes, made to fail in its middle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

/// What fails, by its name in cuda.h; "copy" when the device does it.
class FailingDriver : public testing::TestWithParam<const char*> {
 protected:
  FailingDriver() { fill_pattern(host_, 1); }

  /// Makes it fail from the `after` + 1st call on.
  static void fail(int after) { fake_cuda_fail(GetParam(), after, 1 << 20, 719); }
  static void mend() { fake_cuda_fail(GetParam(), 0, 0, 0); }
  static char* characters(std::span<std::byte> bytes) {
    return reinterpret_cast<char*>(bytes.data());
  }
  static void expect_cause(std::error_code cause) {
    EXPECT_TRUE(cause == errc::io_error || cause == errc::not_supported) << cause.message();
  }

  const cuda_program program_;
  connected_pair pair_;
  std::vector<std::byte> host_ = std::vector<std::byte>(8 * mib);
  const std::span<std::byte> tensor_ = cuda_program::allocate_pattern(8 * mib, 2);
};

TEST_P(FailingDriver, OfTheOwnerBreaksAReadingStreamAlone) {
  const memory_region exposed(*pair_.owner_context, tensor_, access::read_write);
  ucx::istream in(pair_.open(exposed));
  in.get();
  fail(1);
  std::vector<char> into(8 * mib);
  in.read(into.data(), static_cast<std::streamsize>(into.size() - 1));
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  expect_cause(in.error());
  mend();
  ucx::istream again(pair_.open(exposed));
  again.read(into.data(), static_cast<std::streamsize>(into.size()));
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(std::as_bytes(std::span(into)), 2));
}

TEST_P(FailingDriver, OfTheOwnerBreaksAWritingStreamAlone) {
  const memory_region exposed(*pair_.owner_context, tensor_, access::read_write);
  ucx::ostream out(pair_.open(exposed));
  fail(1);
  out.write(characters(host_), static_cast<std::streamsize>(host_.size()));
  out.flush();
  EXPECT_TRUE(out.bad());
  expect_cause(out.error());
  mend();
  ucx::ostream again(pair_.open(exposed));
  again.write(characters(host_), static_cast<std::streamsize>(host_.size()));
  again.flush();
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_), 1));
}

TEST_P(FailingDriver, OfThePeersBreaksAStreamThatReadsAndNothingElse) {
  const memory_region exposed(*pair_.owner_context, host_, access::read_write);
  ucx::istream in(pair_.open(exposed));
  in.get();
  fail(1);
  in.read(characters(tensor_), static_cast<std::streamsize>(tensor_.size() - 1));
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  expect_cause(in.error());
  mend();
  ucx::istream again(pair_.open(exposed));
  again.read(characters(tensor_), static_cast<std::streamsize>(tensor_.size()));
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_), 1));
}

TEST_P(FailingDriver, OfThePeerBreaksAWritingStreamAlone) {
  const memory_region exposed(*pair_.owner_context, host_, access::read_write);
  ucx::ostream out(pair_.open(exposed));
  fail(1);
  out.write(characters(tensor_), static_cast<std::streamsize>(tensor_.size()));
  out.flush();
  EXPECT_TRUE(out.bad());
  expect_cause(out.error());
  mend();
  ucx::ostream again(pair_.open(exposed));
  again.write(characters(tensor_), static_cast<std::streamsize>(tensor_.size()));
  again.flush();
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(host_, 2));
}

INSTANTIATE_TEST_SUITE_P(Calls, FailingDriver,
                         testing::Values("cuPointerGetAttributes", "cuCtxPushCurrent",
                                         "cuMemcpyAsync", "cuEventRecord", "cuEventQuery",
                                         "cuEventSynchronize", "copy"),
                         [](const auto& instance) { return std::string(instance.param); });

/// Events are made when they are first needed, and used again.
TEST(DriverWithoutEvents, BreaksAStreamOfADeviceAlone) {
  const cuda_program program;
  connected_pair pair;
  std::vector<std::byte> host(mib);
  const memory_region exposed(*pair.owner_context, std::span(host), access::read_write);
  const auto tensor = cuda_program::allocate_pattern(mib, 2);
  fake_cuda_fail("cuEventCreate", 0, 1, 719);
  ucx::ostream out(pair.open(exposed));
  out.write(reinterpret_cast<const char*>(tensor.data()), mib);
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::io_error);
  remote_region region = pair.open(exposed);
  region.write_at(0, tensor);
  region.flush();
  EXPECT_TRUE(holds_pattern(host, 2));
}

/// What a transfer can do without.
class DriverThatPinsNothing : public testing::TestWithParam<const char*> {};

TEST_P(DriverThatPinsNothing, BreaksNothing) {
  const cuda_program program;
  connected_pair pair;
  const auto tensor = cuda_program::allocate_pattern(mib, 2);
  const memory_region exposed(*pair.owner_context, tensor, access::read);
  const auto into = cuda_program::allocate(mib);
  remote_region region = pair.open(exposed);
  fake_cuda_fail(GetParam(), 0, 1 << 20, 719);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 2));
  EXPECT_EQ(pair.owner->staging().unpinned_bytes, mib);
  EXPECT_EQ(fake_cuda_registered(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Calls, DriverThatPinsNothing,
                         testing::Values("cuDeviceGet", "cuDevicePrimaryCtxGetState",
                                         "cuDevicePrimaryCtxRetain", "cuMemHostRegister"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(DriverThatCapturesAGraph, IsNotDisturbedAndDisturbsNothing) {
  const cuda_program program;
  connected_pair pair;
  const auto tensor = cuda_program::allocate_pattern(mib, 2);
  const auto into = cuda_program::allocate(mib);
  fake_cuda_begin_capture();
  {
    const memory_region exposed(*pair.owner_context, tensor, access::read_write);
    const memory_region own = memory_region::allocate(*pair.owner_context, mib, access::read_write,
                                                      {memory_kind::cuda, 0});
    remote_region region = pair.open(exposed);
    region.read_at(0, into);
    remote_region other = pair.open(own);
    other.write_at(0, into);
    other.flush();
  }
  EXPECT_NE(fake_cuda_end_capture(), 0);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 2));
}

TEST(DeviceMemoryOfAnotherContext, IsReachedInIts) {
  const cuda_program program;
  connected_pair pair;
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 1), 0);
  const auto foreign = cuda_program::allocate_pattern(mib, 3);
  ASSERT_EQ(cuCtxPopCurrent_v2(&own), 0);
  const auto mine = cuda_program::allocate(mib);
  memory_region exposed(*pair.owner_context, foreign, access::read);
  EXPECT_EQ(exposed.place(), (memory_place{memory_kind::cuda, 1}));
  EXPECT_EQ(exposed.descriptor().device, 1);
  pair.open(exposed).read_at(0, mine);
  EXPECT_TRUE(holds_pattern(cuda_program::content(mine), 3));
}

TEST(DeviceMemoryOfAContextThatEnds, IsAnErrorWhileExposed) {
  const cuda_program program;
  connected_pair pair;
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 1), 0);
  memory_region exposed(*pair.owner_context, cuda_program::allocate(mib), access::read);
  memory_region closed(*pair.owner_context, cuda_program::allocate(mib), access::read);
  remote_region region = pair.open(exposed);
  std::vector<std::byte> into(mib);
  pair.open(closed).read_at(0, into);
  closed.close();
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
}

TEST(DeviceMemoryOfThePrimaryContext, OutlivesTheProgramsRelease) {
  const cuda_program program;
  connected_pair pair;
  memory_region exposed(*pair.owner_context, cuda_program::allocate_pattern(mib, 3), access::read);
  ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
  std::vector<std::byte> into(mib);
  pair.open(exposed).read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 3));
  exposed.close();
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
}

TEST(DeviceMemoryThatIsFreedWhileExposed, IsAnErrorThoughReused) {
  const cuda_program program;
  connected_pair pair;
  const auto tensor = cuda_program::allocate_pattern(mib, 3);
  const memory_region exposed(*pair.owner_context, tensor, access::read_write);
  remote_region region = pair.open(exposed);
  std::vector<std::byte> bytes(mib);
  region.read_at(0, bytes);
  fake_cuda_reallocate(cuda_program::address(tensor));
  cuda_program::put(tensor, pattern(mib, 4));
  std::error_code ec;
  region.read_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.write_at(0, bytes, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor), 4));
}

TEST(DeviceMemoryOverTwoAllocations, IsNotExposed) {
  const cuda_program program;
  connected_pair pair;
  const auto one = cuda_program::allocate(1000);
  const auto two = cuda_program::allocate(1000);
  const auto begin = std::min(one.data(), two.data());
  const auto end = std::max(one.data(), two.data()) + 1000;
  std::error_code ec;
  const memory_region exposed(*pair.owner_context, {begin, end}, access::read, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(DeviceMemoryThatIsPitched, IsWrittenRowByRowAndNowhereElse) {
  constexpr std::size_t pitch = 512;
  constexpr std::size_t width = 333;
  const cuda_program program;
  connected_pair pair;
  const auto image = cuda_program::allocate_pattern(10 * pitch, 4);
  const memory_region exposed(*pair.owner_context, image.subspan(7, 9 * pitch), access::read_write);
  remote_region region = pair.open(exposed);
  for (std::size_t row = 0; row < 9; ++row) {
    std::vector<std::byte> bytes(width);
    fill_pattern(bytes, 5, row * width);
    region.write_at(row * pitch, bytes);
  }
  region.flush();
  const std::vector<std::byte> now = cuda_program::content(image);
  for (std::size_t row = 0; row < 9; ++row) {
    const std::size_t at = 7 + row * pitch;
    EXPECT_TRUE(holds_pattern(std::span(now).subspan(at, width), 5, row * width));
    EXPECT_TRUE(holds_pattern(std::span(now).subspan(at + width, pitch - width), 4, at + width));
  }
}

}  // namespace
}  // namespace ucx::test
