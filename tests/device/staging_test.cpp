// Buffers on the way between devices and peers: that they are pinned, bounded, and of no use to
// anybody while the driver has them; and that a device that hangs keeps nobody else waiting.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class Staging : public testing::Test {
 protected:
  explicit Staging(const pair_options& options = {}) : pair_(options) {}
  memory_region expose(std::span<std::byte> bytes) {
    return memory_region(*pair_.owner_context, bytes, access::read_write);
  }

  const cuda_program program_;
  connected_pair pair_;
};

TEST_F(Staging, IsPinnedOnBothSidesAndCounted) {
  const memory_region exposed = expose(cuda_program::allocate_pattern(4 * mib, 1));
  remote_region region = pair_.open(exposed);
  const auto into = cuda_program::allocate(4 * mib);
  region.read_at(0, into);
  region.write_at(0, into);
  region.flush();
  for (const worker* each : {&*pair_.owner, &*pair_.other}) {
    const staging_statistics told = each->staging();
    EXPECT_EQ(told.bytes, 8 * mib);
    EXPECT_GE(told.copies, 8U);
    EXPECT_EQ(told.unpinned_bytes, 0U);
    EXPECT_GT(told.pinned_memory, 0U);
    EXPECT_LE(told.pinned_memory, worker_options().pinned_memory);
  }
  EXPECT_EQ(fake_cuda_registered(),
            pair_.owner->staging().pinned_memory + pair_.other->staging().pinned_memory);
}

TEST_F(Staging, GoesUnpinnedWhereTheDriverPinsNothingAndSaysSo) {
  fake_cuda_fail("cuMemHostRegister", 0, 1 << 20, 2);
  const memory_region exposed = expose(cuda_program::allocate(4 * mib));
  remote_region region = pair_.open(exposed);
  region.write_at(0, pattern(4 * mib, 2));
  region.flush();
  std::vector<std::byte> into(4 * mib);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 2));
  EXPECT_EQ(pair_.owner->staging().unpinned_bytes, 8 * mib);
  EXPECT_EQ(pair_.owner->staging().pinned_memory, 0U);
}

TEST_F(Staging, IsNotPinnedInAProgramsOwnContext) {
  fake_cuda_reset(2, 1);
  ASSERT_EQ(cuInit(0), 0);
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 1), 0);
  const memory_region exposed = expose(cuda_program::allocate_pattern(mib, 3));
  std::vector<std::byte> into(mib);
  pair_.open(exposed).read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 3));
  EXPECT_EQ(fake_cuda_contexts(), 1U);
  EXPECT_EQ(fake_cuda_registered(), 0U);
}

class StagingOfLittlePinnedMemory : public Staging {
 protected:
  static pair_options little() {
    pair_options options;
    options.owner_defaults.pinned_memory = mib;
    options.reader_defaults.pinned_memory = mib;
    return options;
  }
  StagingOfLittlePinnedMemory() : Staging(little()) {}
};

TEST_F(StagingOfLittlePinnedMemory, KeepsToItsBound) {
  const memory_region exposed = expose(cuda_program::allocate_pattern(8 * mib, 4));
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(8 * mib);
  std::vector<request> reads;
  for (std::size_t at = 0; at < into.size(); at += mib) {
    reads.push_back(region.start_read_at(at, std::span(into).subspan(at, mib)));
  }
  for (request& each : reads) each.wait();
  EXPECT_TRUE(holds_pattern(into, 4));
  const staging_statistics told = pair_.owner->staging();
  EXPECT_LE(told.pinned_memory, mib);
  EXPECT_GT(told.unpinned_bytes, 0U);
  EXPECT_LT(told.unpinned_bytes, told.bytes);
  EXPECT_LE(fake_cuda_registered(), 2 * mib);
}

TEST_F(Staging, OfAServerAndItsClientIsInTheirStatistics) {
  ucx_server server({.bind = "127.0.0.1:0"});
  const publication lent =
      server.publish("tensor", cuda_program::allocate_pattern(mib, 5), access::read);
  ucx::client client(server.url());
  const auto into = cuda_program::allocate(mib);
  client.open("tensor", access::read).read_at(0, into);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 5));
  EXPECT_EQ(server.statistics().staging.bytes, mib);
  EXPECT_EQ(client.statistics().staging.bytes, mib);
}

/// Nothing that the driver is asked for ends until it is let go.
class HungDevice : public Staging {
 protected:
  HungDevice() {
    fill_pattern(host_, 7);
    fake_cuda_hold_copies(1);
  }
  ~HungDevice() override { fake_cuda_hold_copies(0); }

  std::vector<std::byte> host_ = std::vector<std::byte>(mib);
  const std::span<std::byte> tensor_ = cuda_program::allocate_pattern(32 * mib, 6);
};

TEST_F(HungDevice, KeepsItsOwnersWorkerFromNobodyElse) {
  memory_region exposed = expose(tensor_);
  const memory_region other = expose(host_);
  remote_region region = pair_.open(exposed);
  remote_region good = pair_.open(other);
  std::vector<std::byte> into(mib);
  std::vector<std::byte> lost(10);
  const std::vector<std::byte> from(mib);
  request writing = region.start_write_at(0, from);
  request reading = region.start_read_at(0, lost);
  // A buffer for each of them.
  ASSERT_TRUE(pair_.drive_until([&] { return pair_.owner->staging().memory > mib + mib / 4; }));
  good.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 7));
  good.write_at(0, std::span(from).first(10));
  good.flush();
  EXPECT_FALSE(reading.done());
  fake_cuda_hold_copies(0);
  reading.wait();
  region.flush();
}

TEST_F(HungDevice, FailsWhatWaitsForItAtItsDeadline) {
  const memory_region exposed = expose(tensor_);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(10);
  std::error_code ec;
  region.read_at(0, into, {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  region.write_at(0, into, {}, ec);
  region.flush({.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  fake_cuda_hold_copies(0);  // or closing waits
}

TEST_F(HungDevice, ClosingItsRegionIsBounded) {
  memory_region exposed = expose(tensor_);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(4 * mib);
  std::error_code ec;
  // The owner's thread may not be run for longer than the first ones take.
  for (auto within = 50ms; within < 30s && fake_cuda_waiting_copies() == 0; within *= 2) {
    region.read_at(0, into, {.timeout = within}, ec);
    EXPECT_EQ(ec, errc::timed_out);
  }
  ASSERT_GT(fake_cuda_waiting_copies(), 0U);
  const auto before = std::chrono::steady_clock::now();
  exposed.close();
  EXPECT_LT(std::chrono::steady_clock::now() - before, patience(25s));
  EXPECT_GT(fake_cuda_streams(), 0U);
  EXPECT_GT(fake_cuda_waiting_copies(), 0U);
  fake_cuda_hold_copies(0);
  EXPECT_TRUE(soon([] { return fake_cuda_waiting_copies() == 0 && fake_cuda_streams() == 0; }));
}

TEST_F(HungDevice, OfThePeersFailsItsReadAndItsWriteAtTheirDeadline) {
  const memory_region exposed = expose(host_);
  remote_region region = pair_.open(exposed);
  std::error_code ec;
  region.read_at(0, tensor_.first(mib), {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  region.write_at(0, tensor_.first(mib), {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  std::vector<std::byte> into(10);
  region.read_at(0, into);  // the worker has other things to do
  EXPECT_TRUE(holds_pattern(into, 7));
  fake_cuda_hold_copies(0);
  region.read_at(0, tensor_.first(mib));
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_.first(mib)), 7));
}

TEST_F(HungDevice, HasItsBuffersToItselfUntilItLetsGo) {
  const memory_region exposed = expose(tensor_);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(mib);
  std::error_code ec;
  for (auto within = 500ms; within < 30s && fake_cuda_waiting_copies() == 0; within *= 2) {
    region.read_at(0, into, {.timeout = within}, ec);
    EXPECT_EQ(ec, errc::timed_out);
  }
  ASSERT_GT(fake_cuda_waiting_copies(), 0U);
  // These get other buffers: what the driver writes late is in none of them.
  request again = region.start_read_at(mib, into);
  EXPECT_FALSE(pair_.drive_until([&] { return again.done(); }, 100ms));
  fake_cuda_hold_copies(0);
  again.wait();
  EXPECT_TRUE(holds_pattern(into, 6, mib));
}

TEST_F(HungDevice, TakesNoMoreOfAWriteThanAWindow) {
  const memory_region exposed = expose(tensor_);
  remote_region region = pair_.open(exposed);
  const std::vector<std::byte> from = pattern(32 * mib, 8);
  request writing = region.start_write_at(0, from);
  ASSERT_TRUE(pair_.drive_until([&] { return pair_.owner->staging().memory >= 3 * mib; }));
  EXPECT_FALSE(pair_.drive_until([&] { return writing.done(); }, 100ms));
  EXPECT_LE(pair_.owner->staging().memory, 10 * mib);
  fake_cuda_hold_copies(0);
  writing.wait();
  region.flush();
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor_), 8));
}

TEST_F(HungDevice, OfThePeersIsSentNoMoreThanAPartOfWhatItReads) {
  std::vector<std::byte> source = pattern(64 * mib, 9);
  const memory_region exposed = expose(source);
  const auto into = cuda_program::allocate(64 * mib);
  remote_region region = pair_.open(exposed);
  request reading = region.start_read_at(0, into);
  EXPECT_TRUE(pair_.drive_until([&] { return pair_.other->staging().memory >= 8 * mib; }));
  EXPECT_FALSE(pair_.drive_until([&] { return reading.done(); }, 300ms));
  EXPECT_LE(pair_.other->staging().memory, 18 * mib);
  fake_cuda_hold_copies(0);
  reading.wait();
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 9));
}

TEST_F(HungDevice, EndsWithItsWorkerInTime) {
  const memory_region exposed = expose(host_);
  std::optional<remote_region> region = pair_.open(exposed);
  std::error_code ec;
  region->read_at(0, tensor_.first(mib), {.timeout = 50ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  region.reset();
  const auto before = std::chrono::steady_clock::now();
  pair_.connection.reset();
  pair_.other.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, patience(25s));
  fake_cuda_hold_copies(0);
  EXPECT_TRUE(soon([] { return fake_cuda_streams() == 0; }));
}

TEST(MappedMemory, IsCopiedFromAndToADeviceBehindTheCall) {
  const cuda_program program;
  connected_pair pair({route::mapped});
  memory_region exposed = pair.allocate(2 * mib);
  fill_pattern(exposed.bytes().first(mib), 3);
  remote_region region = pair.open(exposed);
  ASSERT_EQ(region.transfer_method(), transfer_method::mapped);
  const auto into = cuda_program::allocate(mib);
  const auto from = cuda_program::allocate_pattern(mib, 4);
  const std::uint64_t before = fake_cuda_bytes(fake_cuda_to_device);
  fake_cuda_hold_copies(1);
  request reading = region.start_read_at(0, into);
  request writing = region.start_write_at(mib, from);
  EXPECT_FALSE(reading.wait_for(50ms));
  EXPECT_EQ(region.first_unconfirmed(), mib);
  fake_cuda_hold_copies(0);
  reading.wait();
  writing.wait();
  region.flush();
  EXPECT_EQ(pair.other->staging().copies, 0U);
  EXPECT_EQ(pair.other->staging().direct_fallbacks, 0U);
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_to_device) - before, mib);
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_from_device), mib);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 3));
  EXPECT_TRUE(holds_pattern(exposed.bytes().subspan(mib), 4));
}

}  // namespace
}  // namespace ucx::test
