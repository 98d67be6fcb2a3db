// Regions of a device's memory, over real transports. Among the tests that see private names only
// because the driver is one that they pretend to have.
#include "region/exposed/device_region.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr memory_place on_device{memory_kind::cuda, 0};

class DeviceRegion : public testing::TestWithParam<pair_options> {
 protected:
  memory_region expose(std::span<std::byte> bytes, access granted = access::read_write) {
    return memory_region(*pair_.owner_context, bytes, granted);
  }

  const cuda_program program_;
  connected_pair pair_{GetParam()};
};

TEST_P(DeviceRegion, TellsWhereItIsAndShowsPeersNoAddressOfIt) {
  const auto bytes = cuda_program::allocate(1000);
  const memory_region exposed = expose(bytes);
  EXPECT_EQ(exposed.place(), on_device);
  EXPECT_EQ(exposed.place().kind, memory_kind::cuda);
  EXPECT_EQ(exposed.size(), 1000U);
  EXPECT_EQ(exposed.bytes().data(), bytes.data());
  const remote_descriptor told = exposed.descriptor();
  EXPECT_EQ(told.kind, memory_kind::cuda);
  EXPECT_EQ(told.address, 0U);
  EXPECT_TRUE(told.remote_key.empty());
  EXPECT_FALSE(told.shareable);
  const bool is_shared = GetParam().over == route::mapped;
  EXPECT_EQ(told.cma != cma_handle(), is_shared);
  EXPECT_EQ(told.cuda_ipc.size, is_shared ? 1000U : 0U);
  EXPECT_EQ(remote_descriptor::decode(told.encode()), told);
  EXPECT_EQ(pair_.open(exposed).kind(), memory_kind::cuda);
}

TEST_P(DeviceRegion, IsReadWithOneCopyOfEachByte) {
  const auto bytes = cuda_program::allocate_pattern(10 * mib + 1, 4);
  const memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  const std::uint64_t before = fake_cuda_bytes(fake_cuda_from_device);
  std::vector<std::byte> into(10 * mib + 1);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 4));
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_from_device) - before, into.size());
  for (std::uint64_t at = 0; at < 10 * mib; at += mib - 4097) {
    region.read_at(at, std::span(into).first(100));
    ASSERT_TRUE(holds_pattern(std::span(into).first(100), 4, at));
  }
}

TEST_P(DeviceRegion, HoldsWhatWasWrittenWhenTheFlushReturns) {
  const auto bytes = cuda_program::allocate(10 * mib + 1);
  const memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  const std::uint64_t before = fake_cuda_bytes(fake_cuda_to_device);
  region.write_at(0, pattern(10 * mib + 1, 5));
  region.flush();
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_to_device) - before, bytes.size());
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes), 5));
}

TEST_P(DeviceRegion, HoldsWhatWasWrittenWhenItsOwnerIsTold) {
  const auto bytes = cuda_program::allocate(mib);
  memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  region.write_at(0, pattern(mib, 6));
  region.start_notify(77).wait();
  const std::optional<notification> told = exposed.take_notification();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->value, 77U);
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes), 6));
}

TEST_P(DeviceRegion, TakesBatchesAsPiecesEach) {
  const auto bytes = cuda_program::allocate(100'000);
  const memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  const std::vector<std::byte> from = pattern(100'000, 9);
  std::vector<write_piece> writes;
  for (std::size_t at = 0; at < from.size(); at += 1000) {
    writes.push_back({at, std::span(from).subspan(at, 1000)});
  }
  region.start_write_batch(writes).wait();
  region.flush();
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes), 9));
  std::vector<std::byte> into(100'000);
  std::vector<read_piece> reads;
  for (std::size_t at = 0; at < into.size(); at += 1000) {
    reads.push_back({at, std::span(into).subspan(at, 1000)});
  }
  region.start_read_batch(reads).wait();
  EXPECT_EQ(into, from);
}

TEST_P(DeviceRegion, RefusesWhatTheProcessorWouldHaveToDo) {
  const auto bytes = cuda_program::allocate(1000);
  const memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  std::error_code ec;
  remote_atomic<std::uint64_t>(region, 0).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  std::vector<std::byte> into(10);
  io_options checked;
  checked.verify = true;
  region.read_at(0, into, checked, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_P(DeviceRegion, KeepsToItsBoundsAndRights) {
  const auto bytes = cuda_program::allocate_pattern(1000);
  const memory_region exposed = expose(bytes, access::read);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(2);
  std::error_code ec;
  region.read_at(999, into, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.write_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes)));
}

TEST_P(DeviceRegion, FreedMemoryIsAnErrorAndItsOwnerGoesOn) {
  const auto bytes = cuda_program::allocate_pattern(4 * mib);
  const auto kept = cuda_program::allocate_pattern(mib, 2);
  const memory_region exposed = expose(bytes);
  const memory_region other = expose(kept);
  remote_region region = pair_.open(exposed);
  remote_region good = pair_.open(other);
  cuda_program::free(bytes);
  std::vector<std::byte> into(4 * mib);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.read_at(0, std::span(into).first(8), {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.write_at(0, into);
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::io_error);
  good.read_at(0, std::span(into).first(mib));
  EXPECT_TRUE(holds_pattern(std::span(into).first(mib), 2));
}

TEST_P(DeviceRegion, CopyThatFailsInMidReadFailsThatReadOnly) {
  const auto bytes = cuda_program::allocate_pattern(8 * mib);
  const memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(8 * mib);
  fake_cuda_fail("copy", 3, 1, 719);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.read_at(0, into, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(holds_pattern(into));
}

TEST_P(DeviceRegion, OpensAsAStreamOfText) {
  const std::string text = "12 34\nand a line\n";
  const auto bytes = cuda_program::allocate(text.size());
  const memory_region exposed = expose(bytes);
  {
    remote_region written = pair_.open(exposed);
    ucx::ostream out(written);
    out << 12 << ' ' << 34 << "\nand a line\n" << std::flush;
    EXPECT_TRUE(out.good());
  }
  remote_region region = pair_.open(exposed);
  ucx::istream in(region);
  int first = 0;
  int second = 0;
  std::string line;
  in >> first >> second >> std::ws;
  std::getline(in, line);
  EXPECT_EQ(first, 12);
  EXPECT_EQ(second, 34);
  EXPECT_EQ(line, "and a line");
}

TEST_P(DeviceRegion, IsAllocatedZeroedOnTheDeviceThatIsNamed) {
  for (const memory_kind kind : {memory_kind::cuda, memory_kind::cuda_managed}) {
    const memory_region exposed =
        memory_region::allocate(*pair_.owner_context, mib, access::read_write, {kind, 1});
    EXPECT_EQ(exposed.place(), (memory_place{kind, 1}));
    remote_region region = pair_.open(exposed);
    std::vector<std::byte> into(mib, std::byte{1});
    region.read_at(0, into);
    EXPECT_TRUE(all_bytes_are(into, std::byte{}));
    region.write_at(10, pattern(100));
    region.flush();
    region.read_at(10, std::span(into).first(100));
    EXPECT_TRUE(holds_pattern(std::span(into).first(100)));
  }
  EXPECT_EQ(fake_cuda_allocated(), 0U);
}

TEST_P(DeviceRegion, ClosingWaitsForTheCopyThatRunsAndRefusesTheRest) {
  const auto bytes = cuda_program::allocate_pattern(16 * mib);
  memory_region exposed = expose(bytes);
  remote_region region = pair_.open(exposed);
  std::vector<std::byte> into(16 * mib);
  fake_cuda_hold_copies(1);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(pair_.drive_until([] { return fake_cuda_waiting_copies() > 0; }));
  auto closing = std::async(std::launch::async, [&] { exposed.close(); });
  EXPECT_EQ(closing.wait_for(50ms), std::future_status::timeout);
  fake_cuda_hold_copies(0);
  closing.get();
  cuda_program::free(bytes);  // nothing of ours copies from it any more
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
}

std::vector<pair_options> device_pairs() {
  std::vector<pair_options> made;
  for (const route over :
       {route::tcp_by_address, route::tcp_by_listener, route::tcp_to_itself, route::mapped}) {
    made.push_back({over});
  }
  return made;
}

INSTANTIATE_TEST_SUITE_P(Routes, DeviceRegion, testing::ValuesIn(device_pairs()), name_of_pair);

TEST(DeviceMemoryOfTheCaller, PinnedMemoryIsTheHostsToPeers) {
  const cuda_program program;
  connected_pair pair;
  const auto bytes = cuda_program::allocate_pinned(1000);
  fill_pattern(bytes);
  const memory_region exposed(*pair.owner_context, bytes, access::read);
  EXPECT_EQ(exposed.descriptor().kind, memory_kind::host);
  std::vector<std::byte> into(1000);
  pair.open(exposed).read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(fake_cuda_copies(fake_cuda_from_device), 0U);
}

TEST(DeviceMemoryOfTheCaller, NeedsMessages) {
  const cuda_program program;
  context_options options = context_options_for(route::shared_memory);
  options.features = feature::rma;
  const context without(options);
  std::error_code ec;
  const memory_region exposed(without, cuda_program::allocate(10), access::read, {}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
}

TEST(DeviceMemoryOfTheCaller, KindsNeverAllocatedAreNotSupported) {
  const cuda_program program;
  connected_pair pair;
  for (const memory_kind kind : {memory_kind::rocm, memory_kind::other}) {
    std::error_code ec;
    const memory_region made =
        memory_region::allocate(*pair.owner_context, 10, access::read, {kind}, ec);
    EXPECT_EQ(ec, errc::not_supported);
  }
}

TEST(DeviceMemoryOfTheCaller, IsExposedAsNothingElseThanIsExpected) {
  const cuda_program program;
  connected_pair pair;
  ucx_server server({.bind = "127.0.0.1:0"});
  kind_memory host(memory_kind::host, 100);
  kind_memory pinned(memory_kind::cuda_pinned, 100);
  kind_memory device(memory_kind::cuda, 100);
  const auto outcome = [&](kind_memory& memory, const std::optional<memory_place>& expected) {
    std::error_code ec;
    std::error_code published;
    const memory_region made(*pair.owner_context, memory.bytes(), access::read, expected, ec);
    const auto lent = server.publish("x", memory.bytes(), access::read, expected, published);
    EXPECT_EQ(ec, published);
    return ec;
  };
  EXPECT_FALSE(outcome(host, memory_place()));
  EXPECT_FALSE(outcome(pinned, memory_place{memory_kind::cuda_pinned, 0}));
  EXPECT_FALSE(outcome(device, memory_place{memory_kind::cuda}));
  EXPECT_EQ(outcome(host, memory_place{memory_kind::cuda}), errc::invalid_argument);
  EXPECT_EQ(outcome(device, memory_place()), errc::invalid_argument);
  EXPECT_EQ(outcome(device, memory_place{memory_kind::cuda, 1}), errc::invalid_argument);
  // Without a place it may be anywhere.
  for (kind_memory* each : {&host, &pinned, &device}) EXPECT_FALSE(outcome(*each, {}));
  EXPECT_THROW(
      const memory_region made(*pair.owner_context, device.bytes(), access::read, memory_place()),
      error);
}

class PinnedMemory : public testing::TestWithParam<route> {};

TEST_P(PinnedMemory, IsTheHostsToPeersAndGoesWithItsRegion) {
  const cuda_program program;
  connected_pair pair({GetParam()});
  std::error_code ec;
  memory_region own = memory_region::allocate(*pair.owner_context, mib, access::read_write,
                                              {memory_kind::cuda_pinned, 1}, ec);
  ASSERT_FALSE(ec) << ec.message();
  EXPECT_EQ(own.place(), (memory_place{memory_kind::cuda_pinned, 1}));
  EXPECT_EQ(place_of(own.bytes().data()), own.place());
  EXPECT_EQ(own.descriptor().kind, memory_kind::host);
  EXPECT_EQ(own.descriptor().device, -1);
  EXPECT_EQ(fake_cuda_allocated(), mib);
  std::vector<std::byte> into(mib, std::byte{1});
  remote_region region = pair.open(own);
  region.read_at(0, into);
  EXPECT_EQ(into, std::vector<std::byte>(mib));
  region.write_at(0, pattern(mib, 3));
  region.flush();
  EXPECT_TRUE(holds_pattern(own.bytes(), 3));
  own.close();
  EXPECT_EQ(fake_cuda_allocated(), 0U);
}

TEST_P(PinnedMemory, ThatThereIsNotIsNoMemory) {
  const cuda_program program;
  connected_pair pair({GetParam()});
  fake_cuda_fail("cuMemHostAlloc", 0, 1, 2);
  std::error_code ec;
  const memory_region none = memory_region::allocate(*pair.owner_context, mib, access::read,
                                                     {memory_kind::cuda_pinned, 0}, ec);
  EXPECT_EQ(ec, errc::no_memory);
}

INSTANTIATE_TEST_SUITE_P(Routes, PinnedMemory,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener),
                         [](const auto& instance) { return to_string(instance.param); });

class PublishedDeviceMemory : public testing::Test {
 protected:
  const cuda_program program_;
  ucx_server server_{{.bind = "127.0.0.1:0"}};
};

TEST_F(PublishedDeviceMemory, IsListedAsWhatItIsAndRead) {
  const auto bytes = cuda_program::allocate_pattern(mib, 3);
  const publication lent = server_.publish("tensor", bytes, access::read_write);
  const publication own = server_.allocate("cache", 1000, access::read, on_device);
  EXPECT_EQ(lent.bytes().data(), bytes.data());
  EXPECT_EQ(place_of(own.bytes().data()), on_device);
  ucx::client client(server_.url());
  const std::vector<entry> listed = client.list();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].kind, memory_kind::cuda);
  EXPECT_EQ(listed[1].kind, memory_kind::cuda);
  EXPECT_EQ(listed[1].type, entry_type::memory);
  remote_region region = client.open("tensor", access::read);
  std::vector<std::byte> into(mib);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 3));
}

TEST_F(PublishedDeviceMemory, TellsItsDevice) {
  const publication first =
      server_.allocate("first", 1000, access::read, {memory_kind::cuda_managed, 1});
  const publication host = server_.allocate("host", 1000, access::read);
  const publication second = server_.publish("second", cuda_program::allocate(10), access::read);
  ucx::client client(server_.url());
  const std::vector<entry> listed = client.list();
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0].device, 1);
  EXPECT_EQ(listed[1].device, -1);
  EXPECT_EQ(listed[2].device, 0);
  EXPECT_EQ(client.stat("first").device, 1);
}

TEST_F(PublishedDeviceMemory, IsNotHashedAsNoMemoryIs) {
  const publication lent = server_.publish("tensor", cuda_program::allocate(1000), access::read);
  ucx::client client(server_.url());
  remote_region region = client.open("tensor", access::read);
  std::error_code ec;
  EXPECT_TRUE(client.digest(region, {.length = 1000, .chunk = 100}, {}, ec).empty());
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_F(PublishedDeviceMemory, SaysWhyTheDriverAllocatedNone) {
  try {
    const publication made =
        server_.allocate("cache", fake_cuda_device_size + 1, access::read, on_device);
    FAIL() << "there is not so much";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::no_memory);
    EXPECT_THAT(failed.what(), testing::HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  }
  EXPECT_TRUE(server_.list().empty());
}

}  // namespace
}  // namespace ucx::test
