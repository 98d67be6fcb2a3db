// Reads into, and writes out of, the memory of a device on the peer's side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

/// How the peer reaches the owner, which memory the region is, and which the peer's.
using places = std::tuple<route, memory_kind, memory_kind>;

std::span<std::byte> allocate(memory_kind kind, std::size_t size) {
  if (kind == memory_kind::cuda) return cuda_program::allocate(size);
  if (kind == memory_kind::cuda_managed) return cuda_program::allocate_managed(size);
  return cuda_program::allocate_pinned(size);
}

char* characters(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

class DeviceTarget : public testing::TestWithParam<places> {
 protected:
  memory_region expose(std::size_t size, std::uint64_t seed) {
    memory_region made =
        std::get<1>(GetParam()) == memory_kind::host
            ? pair_.allocate(size)
            : memory_region(*pair_.owner_context, allocate(std::get<1>(GetParam()), size),
                            access::read_write);
    cuda_program::put(made.bytes(), pattern(size, seed));
    return made;
  }
  std::span<std::byte> target(std::size_t size) { return allocate(std::get<2>(GetParam()), size); }
  bool copies_here() const {
    return std::get<2>(GetParam()) == memory_kind::cuda ||
           std::get<2>(GetParam()) == memory_kind::cuda_managed;
  }

  const cuda_program program_;
  connected_pair pair_{{std::get<0>(GetParam())}};
};

TEST_P(DeviceTarget, HoldsWhatWasReadWhenTheReadIsDone) {
  const memory_region exposed = expose(5 * mib + 3, 1);
  remote_region region = pair_.open(exposed);
  const auto into = target(5 * mib + 3);
  const std::uint64_t before = fake_cuda_bytes(fake_cuda_to_device);
  region.read_at(0, into);
  const std::uint64_t copied = fake_cuda_bytes(fake_cuda_to_device) - before;
  EXPECT_EQ(copied, copies_here() ? into.size() : 0U);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
  region.read_at(1000, into.first(10));
  region.read_at(mib, into.subspan(20, 10));
  const std::vector<std::byte> now = cuda_program::content(into.first(30));
  EXPECT_TRUE(holds_pattern(std::span(now).first(10), 1, 1000));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(10, 10), 1, 10));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(20), 1, mib));
}

TEST_P(DeviceTarget, IsInTheAttributesOfItsReadsAndWrites) {
  const memory_region exposed = expose(mib, 1);
  remote_region region = pair_.open(exposed);
  const auto memory = target(mib);
  const auto check = [&](request started) {
    if (started.attributes().kind == operation_kind::none) return;  // done by this processor
    const memory_kind before = started.attributes().memory;
    started.wait();
    const memory_kind behind = started.attributes().memory;
    EXPECT_EQ(behind, copies_here() ? memory_kind::cuda : memory_kind::host);
    if (before != behind) {
      EXPECT_EQ(before, std::get<2>(GetParam()));
    }
  };
  check(region.start_read_at(0, memory));
  check(region.start_write_at(0, memory));
  region.flush();
}

TEST_P(DeviceTarget, IsWhatIsWritten) {
  const memory_region exposed = expose(5 * mib + 3, 1);
  remote_region region = pair_.open(exposed);
  const auto from = target(5 * mib + 3);
  cuda_program::put(from, pattern(from.size(), 2));
  const std::uint64_t before = fake_cuda_bytes(fake_cuda_from_device);
  region.write_at(0, from);
  region.flush();
  const std::uint64_t copied = fake_cuda_bytes(fake_cuda_from_device) - before;
  EXPECT_EQ(copied, copies_here() ? from.size() : 0U);
  EXPECT_TRUE(holds_pattern(cuda_program::content(exposed.bytes()), 2));
}

TEST_P(DeviceTarget, CanBeReusedWhenItsWriteIsDone) {
  const memory_region exposed = expose(mib, 1);
  remote_region region = pair_.open(exposed);
  const auto from = target(mib);
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    cuda_program::put(from, pattern(mib, seed));
    region.write_at(0, from);
    cuda_program::put(from, pattern(mib, 99));
    region.flush();
    EXPECT_TRUE(holds_pattern(cuda_program::content(exposed.bytes()), seed));
  }
}

TEST_P(DeviceTarget, SharesABatchWithMemoryOfTheHost) {
  const memory_region exposed = expose(10'000, 1);
  remote_region region = pair_.open(exposed);
  const auto device = target(500);
  std::vector<std::byte> host(500);
  const std::vector<read_piece> reads{
      {0, device.first(100)}, {1000, host}, {5000, device.subspan(100)}};
  region.read_batch(reads);
  const std::vector<std::byte> now = cuda_program::content(device);
  EXPECT_TRUE(holds_pattern(std::span(now).first(100), 1));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(100), 1, 5000));
  EXPECT_TRUE(holds_pattern(host, 1, 1000));
  cuda_program::put(device, pattern(500, 7));
  const std::vector<write_piece> writes{{0, device}, {500, host}};
  region.write_batch(writes);
  region.flush();
  const std::vector<std::byte> written = cuda_program::content(exposed.bytes());
  EXPECT_TRUE(holds_pattern(std::span(written).first(500), 7));
  EXPECT_TRUE(holds_pattern(std::span(written).subspan(500, 500), 1, 1000));
}

TEST_P(DeviceTarget, IsFilledByStreamsFromTheirBufferAndPastIt) {
  const memory_region exposed = expose(4 * mib, 3);
  ucx::istream in(pair_.open(exposed));
  const auto into = target(4 * mib);
  std::size_t at = 0;
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{100}, std::size_t{70'000}, 3 * mib}) {
    ASSERT_TRUE(in.read(characters(into.subspan(at)), static_cast<std::streamsize>(length)));
    at += length;
  }
  const std::vector<std::byte> now = cuda_program::content(into.first(at));
  EXPECT_TRUE(holds_pattern(now, 3));
  EXPECT_EQ(in.get(), std::to_integer<int>(pattern_byte(at, 3)));
}

TEST_P(DeviceTarget, IsWrittenByStreamsInOrder) {
  const memory_region exposed = expose(4 * mib, 1);
  const auto from = target(4 * mib);
  cuda_program::put(from, pattern(4 * mib, 4));
  ucx::ostream out(pair_.open(exposed));
  std::size_t at = 0;
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{100}, std::size_t{70'000}, 3 * mib}) {
    ASSERT_TRUE(out.write(characters(from.subspan(at)), static_cast<std::streamsize>(length)));
    at += length;
  }
  ASSERT_TRUE(out.flush());
  const std::vector<std::byte> now = cuda_program::content(exposed.bytes());
  EXPECT_TRUE(holds_pattern(std::span(now).first(at), 4));
  EXPECT_TRUE(holds_pattern(std::span(now).subspan(at), 1, at));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DeviceTarget,
    testing::Combine(
        testing::Values(route::tcp_by_address, route::tcp_to_itself, route::mapped),
        testing::Values(memory_kind::host, memory_kind::cuda, memory_kind::cuda_managed),
        testing::Values(memory_kind::cuda, memory_kind::cuda_managed, memory_kind::cuda_pinned)),
    [](const auto& instance) {
      return to_string(std::get<0>(instance.param)) + "_" +
             std::string(to_string(std::get<1>(instance.param))) + "_and_" +
             std::string(to_string(std::get<2>(instance.param)));
    });

class DeviceTargetInTrouble : public testing::TestWithParam<route> {
 protected:
  DeviceTargetInTrouble() { fill_pattern(exposed_.bytes(), 1); }

  const cuda_program program_;
  connected_pair pair_{{GetParam()}};
  memory_region exposed_ = pair_.allocate(4 * mib);
  remote_region region_ = pair_.open(exposed_);
};

TEST_P(DeviceTargetInTrouble, CopyThatFailsFailsItsReadAndNoOther) {
  const auto into = cuda_program::allocate(4 * mib);
  fake_cuda_fail("copy", 0, 1, 719);
  std::error_code ec;
  region_.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region_.read_at(0, into, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
}

TEST_P(DeviceTargetInTrouble, CopyThatFailsFailsItsWriteAndNoOther) {
  const auto from = cuda_program::allocate_pattern(4 * mib, 2);
  fake_cuda_fail("copy", 0, 1, 719);
  std::error_code ec;
  region_.write_at(0, from, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region_.flush({}, ec);
  region_.write_at(0, from, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  region_.flush({}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(holds_pattern(exposed_.bytes(), 2));
}

TEST_P(DeviceTargetInTrouble, CheckedReadsAreNotSupported) {
  const auto into = cuda_program::allocate(1000);
  io_options checked;
  checked.verify = true;
  std::error_code ec;
  region_.read_at(0, into, checked, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_P(DeviceTargetInTrouble, StreamShowsBadbitAndTheCause) {
  const auto memory = cuda_program::allocate(1000);
  ucx::istream in(pair_.open(exposed_));
  in.get();
  fake_cuda_fail("copy", 0, 1, 719);
  in.read(characters(memory), 10);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::io_error);
  ucx::ostream out(pair_.open(exposed_));
  fake_cuda_fail("copy", 0, 1, 719);
  out.write(characters(memory), 10);
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::io_error);
}

INSTANTIATE_TEST_SUITE_P(Routes, DeviceTargetInTrouble,
                         testing::Values(route::tcp_by_address, route::mapped),
                         [](const auto& instance) { return to_string(instance.param); });

TEST(DeviceTargetThatIsFreed, DuringAReadIsAnErrorOfThatRead) {
  const cuda_program program;
  connected_pair pair({route::tcp_by_address, progress_mode::external});
  const memory_region exposed = pair.allocate(mib);
  fill_pattern(exposed.bytes(), 1);
  remote_region region = pair.open(exposed);
  const auto into = cuda_program::allocate(mib);
  const auto other = cuda_program::allocate(mib);
  pair.pause_owner();
  request reading = region.start_read_at(0, into);
  cuda_program::free(into);
  pair.resume_owner();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::io_error);
  region.read_at(0, other, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(holds_pattern(cuda_program::content(other), 1));
}

TEST(DeviceTargetWithoutMessages, IsFeatureDisabled) {
  const cuda_program program;
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.shared_memory = true;
  options.link.resources = {"posix/memory", "cma/memory", "self/memory0"};
  for (context_options* each : {&options.owner_context, &options.reader_context}) {
    each->transports = {"posix", "cma", "self"};
    each->features = feature::rma | feature::wakeup;
  }
  simulated_pair pair(options);
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, 1000, access::read_write);
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  const auto memory = cuda_program::allocate(1000);
  std::error_code ec;
  region.read_at(0, memory, {}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
  region.write_at(0, memory, {}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
}

TEST(MemoryCopy, GoesBetweenAnyTwoPlaces) {
  const cuda_program program;
  for (const memory_kind target :
       {memory_kind::cuda, memory_kind::cuda_managed, memory_kind::cuda_pinned}) {
    for (const memory_kind source :
         {memory_kind::cuda, memory_kind::cuda_managed, memory_kind::cuda_pinned}) {
      const auto into = allocate(target, 1000);
      const auto from = allocate(source, 1000);
      EXPECT_EQ(is_copied_by_driver(into.data()), target != memory_kind::cuda_pinned);
      cuda_program::put(from, pattern(1000, 5));
      copy_memory(into.data(), from.data(), 1000);
      EXPECT_TRUE(holds_pattern(cuda_program::content(into), 5));
    }
  }
}

TEST(MemoryCopy, ThatFailsSaysSo) {
  const cuda_program program;
  const auto into = cuda_program::allocate(10);
  const std::vector<std::byte> from(10);
  for (const auto& [call, wanted] :
       {std::pair{"copy", errc::io_error}, std::pair{"cuStreamCreate", errc::no_memory}}) {
    fake_cuda_fail(call, 0, 2, wanted == errc::no_memory ? 2 : 719);
    std::error_code ec;
    copy_memory(into.data(), from.data(), 10, {}, ec);
    EXPECT_EQ(ec, wanted);
    EXPECT_THROW(copy_memory(into.data(), from.data(), 10), error);
  }
}

TEST(MemoryCopy, MakesNoStreamForEachCall) {
  const cuda_program program;
  const auto into = cuda_program::allocate(77);
  const std::vector<std::byte> from = pattern(77);
  for (int i = 0; i < 20; ++i) copy_memory(into.data(), from.data(), 77);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into)));
  EXPECT_EQ(fake_cuda_calls("cuStreamCreate"), 1U);
}

TEST(MemoryCopy, KeepsNothingInAContextOfTheProgramsThatMayEnd) {
  const cuda_program program;
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  const auto into = cuda_program::allocate(77);
  copy_memory(into.data(), pattern(77).data(), 77);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into)));
  EXPECT_EQ(fake_cuda_streams(), 0U);
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  EXPECT_EQ(fake_cuda_late_uses(), 0U);
}

TEST(MemoryCopy, AsksTheDriverNothingOfTheStack) {
  const cuda_program program;
  // AddressSanitizer keeps local variables elsewhere.
  const void* const here = __builtin_frame_address(0);
  const std::uint64_t before = fake_cuda_calls("cuPointerGetAttributes");
  EXPECT_FALSE(is_copied_by_driver(here));
  EXPECT_EQ(fake_cuda_calls("cuPointerGetAttributes"), before);
}

}  // namespace
}  // namespace ucx::test
