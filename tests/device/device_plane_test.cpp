// Memory of devices that adapters move between two simulated hosts: UCX's RMA, by planes of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "device/plane_hosts.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/adapter_memory.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "worker/device_plane.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(DevicePlane, ReadsAndWritesBetweenHostsWithoutStaging) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  EXPECT_EQ(region.why_not(transfer_method::rma), "");
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  const auto device = cuda_program::allocate(plane_size);
  EXPECT_FALSE(read_plane(region, device));
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1));
  EXPECT_EQ(hosts.gets(), 3U);  // with the probe
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  cuda_program::put(device, pattern(plane_size, 3));
  region.write_at(0, device);
  region.flush();
  EXPECT_TRUE(hosts.holds(3));
  EXPECT_EQ(hosts.puts(), 2U);
  EXPECT_EQ(hosts.pair.reader.staging().direct_bytes, 4 * plane_size);
  EXPECT_EQ(hosts.pair.reader.staging().copies, 0U);
  EXPECT_EQ(hosts.pair.owner.staging().copies, 0U);
}

TEST(DevicePlane, ReadsAtOffsets) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  std::vector<std::byte> into(100);
  region.read_at(plane_size - 100, into);
  const std::vector<std::byte> all = pattern(plane_size, 1);
  EXPECT_TRUE(std::equal(into.begin(), into.end(), all.end() - 100));
  std::error_code ec;
  region.read_at(plane_size - 99, into, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
}

TEST(DevicePlane, IsThereAtOnceWhereItIsAskedForByName) {
  two_hosts hosts;
  remote_region region = hosts.open({.transfer_method = transfer_method::rma});
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(hosts.gets(), 2U);
}

/// The reader's bytes come by message, and it says why.
void expect_plane_staged(two_hosts& hosts, const char* why) {
  remote_region region = hosts.open();
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_TRUE(soon([&] {
    return region.why_not(transfer_method::rma).find(why) != std::string::npos;
  })) << region.why_not(transfer_method::rma);
  std::error_code ec;
  const remote_region by_name(*hosts.connection, hosts.exposed->descriptor(),
                              {.transfer_method = transfer_method::rma}, ec);
  EXPECT_TRUE(ec == errc::not_supported || ec == errc::no_memory) << ec.message();
}

TEST(DevicePlane, OfUcxBefore121IsNotMade) {
  simulated_pair_options options = by_adapters();
  options.link.version_minor = 20;
  two_hosts hosts(options);
  EXPECT_TRUE(hosts.exposed->descriptor().device_rma.key.empty());
  expect_plane_staged(hosts, "no key for adapters");
  EXPECT_EQ(hosts.gets(), 0U);
}

TEST(DevicePlane, NeedsUcxThatKnowsDevices) {
  simulated_pair_options options = by_adapters();
  options.link.resources = {"rc_mlx5/mlx5_0:1"};
  two_hosts hosts(options);
  EXPECT_TRUE(hosts.exposed->descriptor().device_rma.key.empty());
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, NeedsHardware) {
  simulated_pair_options options = by_adapters();
  options.link.resources = {"tcp/eth0", "cuda_copy/cuda"};
  two_hosts hosts(options);
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, IsOffByDefault) {
  EXPECT_FALSE(context_options().device_rma);
  simulated_pair_options options = by_adapters();
  options.owner_context.device_rma = options.reader_context.device_rma =
      context_options().device_rma;
  two_hosts hosts(options);
  constexpr std::size_t flags_at = 54;  // docs/reference/wire-format.md
  EXPECT_EQ(hosts.exposed->descriptor().encode().at(flags_at) & std::byte{64}, std::byte{0});
  EXPECT_EQ(hosts.pair.owner_process.count(call::init), 1U);
  expect_plane_staged(hosts, "no key for adapters");
  EXPECT_EQ(hosts.pair.reader_process.count(call::init), 1U);
  EXPECT_EQ(hosts.owners_lines.all().find("RMA"), std::string::npos);
  EXPECT_EQ(hosts.readers_lines.all().find("RMA"), std::string::npos);
}

TEST(DevicePlane, IsTurnedOffAtEitherSide) {
  simulated_pair_options options = by_adapters();
  options.owner_context.device_rma = false;
  {
    two_hosts hosts(options);
    expect_plane_staged(hosts, "no key for adapters");
  }
  options = by_adapters();
  options.reader_context.device_rma = false;
  two_hosts hosts(options);
  EXPECT_FALSE(hosts.exposed->descriptor().device_rma.key.empty());
  expect_plane_staged(hosts, "device_rma is off");
  EXPECT_EQ(hosts.gets() + hosts.puts(), 0U);
}

TEST(DevicePlane, ThatCanNotBeMadeAtTheReaderIsSaid) {
  two_hosts hosts;
  hosts.pair.reader_process.faults().fail(call::init, UCS_ERR_UNSUPPORTED);
  expect_plane_staged(hosts, "second context");
}

TEST(DevicePlane, MemoryThatUcxDoesNotRegisterIsStaged) {
  two_hosts hosts;
  hosts.exposed.reset();
  hosts.pair.owner_process.faults().fail(call::mem_map, UCS_ERR_IO_ERROR);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read_write);
  EXPECT_THAT(hosts.owners_lines.all(), HasSubstr("not registered for RMA between hosts"));
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, MemoryThatUcxTakesForAnotherKindIsStaged) {
  simulated_pair_options options = by_adapters();
  options.link.mistakes_devices = true;
  two_hosts hosts(options);
  EXPECT_THAT(hosts.owners_lines.all(), HasSubstr("another kind"));
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, MemoryThatUcxTellsNothingOfIsStaged) {
  two_hosts hosts;
  hosts.exposed.reset();
  hosts.pair.owner_process.faults().fail(call::mem_query, UCS_ERR_UNSUPPORTED);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read_write);
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, OutOfReachOfAdaptersIsStagedAndSaysWhy) {
  two_hosts hosts(by_adapters(), access::read);
  hosts.exposed.reset();
  fake_cuda_let_adapters_reach(0);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read);
  EXPECT_FALSE(hosts.exposed->descriptor().device_rma.key.empty());  // UCX maps it all the same
  remote_region region = hosts.open();
  EXPECT_TRUE(soon([&] {
    return region.why_not(transfer_method::rma).find("nvidia_peermem") != std::string::npos;
  }));
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(hosts.readers_lines.all(), HasSubstr("dma-buf"));
  EXPECT_THAT(hosts.readers_lines.all(), HasSubstr("UCX refuses to read"));
  std::error_code ec;
  const remote_region by_name(*hosts.connection, hosts.exposed->descriptor(),
                              {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(DevicePlane, ThatIsCutOffIsStaged) {
  two_hosts hosts;
  fake_cuda_let_adapters_reach(0);
  expect_plane_staged(hosts, "was lost");
}

TEST(DevicePlane, WritesWhereUcxOnlyRefusesReads) {
  two_hosts hosts;
  hosts.devices->gets_are_emulated = true;
  remote_region region = hosts.open();
  ASSERT_TRUE(soon([&] {
    return region.why_not(transfer_method::rma).find("nvidia_peermem") != std::string::npos;
  }));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(hosts.puts(), 1U);
  EXPECT_EQ(hosts.pair.owner.staging().copies, 0U);
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 2));
  EXPECT_EQ(hosts.gets(), 1U);  // the probe
}

TEST(DevicePlane, AccessThatFailsAloneGoesByMessage) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  std::vector<std::byte> into(plane_size);
  hosts.pair.reader_process.faults().fail(call::get, UCS_ERR_NO_MEMORY);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  hosts.pair.reader_process.faults().fail(call::put, UCS_ERR_NO_MEMORY);
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  EXPECT_EQ(hosts.pair.reader.staging().direct_fallbacks, 2U);
  const std::uint64_t before = hosts.gets();
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_EQ(hosts.gets(), before + 1);
}

/// Its bytes might come later: it is not repeated by message, and its connection ends.
void expect_unconfirmed(two_hosts& hosts, remote_region& region) {
  const std::vector<std::byte> bytes = pattern(plane_size, 2);
  const std::uint64_t before = hosts.puts();
  std::error_code ec;
  region.write_at(0, bytes, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(hosts.puts(), before + 1);
  EXPECT_EQ(hosts.pair.reader.staging().direct_fallbacks, 0U);
  EXPECT_TRUE(soon([&] { return region.transfer_method() == transfer_method::message; }));
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("was lost"));
}

TEST(DevicePlane, WriteThatFailsOnItsWayIsNotRepeated) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  hosts.pair.reader_process.faults().fail_late(call::put, UCS_ERR_IO_ERROR);
  expect_unconfirmed(hosts, region);
}

TEST(DevicePlane, WriteThatIsNotFlushedIsNotRepeated) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  hosts.pair.reader_process.faults().fail(call::ep_flush, UCS_ERR_IO_ERROR);
  expect_unconfirmed(hosts, region);
  EXPECT_TRUE(soon([&] { return hosts.pair.reader_process.count(call::ep_close) > 0; }));
}

TEST(DevicePlane, WriteThatIsRefusedLateGoesByMessage) {
  two_hosts hosts(by_adapters(), access::write);
  remote_region region = hosts.open();
  hosts.pair.reader_process.faults().fail_late(call::put, UCS_ERR_CANCELED);
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(hosts.puts(), 1U);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("UCX refuses to write"));
}

TEST(DevicePlane, WayThatIsLostIsToldOfARegionOpenedByName) {
  two_hosts hosts;
  remote_region region = hosts.open({.transfer_method = transfer_method::rma});
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("another way"));
  hosts.pair.reader_process.faults().fail_late(call::put, UCS_ERR_IO_ERROR);
  expect_unconfirmed(hosts, region);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("another way"));
}

TEST(DevicePlane, StreamThatFailedIsAnError) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  const auto device = cuda_program::allocate_pattern(plane_size, 2);
  CUstream_st* stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), 0);
  fake_cuda_fail("cuEventQuery", 0, 1, 700);
  std::error_code ec;
  region.write_at(0, device, {.cuda_stream = stream}, ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_EQ(hosts.puts(), 0U);
  EXPECT_TRUE(hosts.holds(1));
  fake_cuda_fail("cuEventQuery", 0, 1, 700);
  const std::uint64_t before = hosts.gets();
  EXPECT_EQ(read_plane(region, device, {.cuda_stream = stream}), errc::io_error);
  EXPECT_EQ(hosts.gets(), before);
}

TEST(DevicePlane, KeyAndConnectionEndWithTheRegion) {
  two_hosts hosts;
  std::optional<remote_region> region(hosts.opened());
  const auto& process = hosts.pair.reader_process;
  const std::uint64_t keys = process.count(call::rkey_destroy);
  const std::uint64_t closed = process.count(call::ep_close);
  region.reset();
  EXPECT_TRUE(soon([&] { return process.count(call::rkey_destroy) == keys + 1; }));
  EXPECT_TRUE(soon([&] { return process.count(call::ep_close) == closed + 1; }));
}

TEST(DevicePlane, NeedsUcxThatTakesItsSettings) {
  for (const char* key : {"PROTO_ENABLE", "PROTO_EMULATION_ENABLE"}) {
    simulated_pair_options options = by_adapters();
    options.link.unknown_keys = {key};
    two_hosts hosts(options);
    EXPECT_TRUE(hosts.exposed->descriptor().device_rma.key.empty()) << key;
    expect_plane_staged(hosts, "no key for adapters");
  }
}

TEST(DevicePlane, RefusesWhatWouldBeEmulatedWhateverTheProgramSet) {
  simulated_pair_options options = by_adapters();
  options.owner_context.configuration = {{"PROTO_ENABLE", "n"}};
  options.reader_context.configuration = {{"PROTO_ENABLE", "n"}};
  two_hosts hosts(options, access::read);
  hosts.exposed.reset();
  fake_cuda_let_adapters_reach(0);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read);
  remote_region region = hosts.open();
  EXPECT_TRUE(soon([&] {
    return region.why_not(transfer_method::rma).find("UCX refuses") != std::string::npos;
  })) << region.why_not(transfer_method::rma);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
}

TEST(DevicePlane, ThatHangsIsLeftAtTheEnd) {
  two_hosts hosts;
  plane_lines lines;
  std::shared_ptr<detail::logger> log = *detail::logger::make(lines.options(), "plane");
  auto made = detail::device_plane::make(hosts.pair.reader_process.api(),
                                         by_adapters().reader_context, {}, std::move(log));
  ASSERT_TRUE(made);
  std::shared_ptr<detail::device_plane> plane = *std::move(made);
  const auto held = std::make_shared<held_transfer>();
  held->key = plane->key(plane->peer(pattern(32)), pattern(32));
  held->abandon();
  ASSERT_FALSE(plane->start(held));
  ASSERT_TRUE(held->is_held());
  plane->close();
  EXPECT_THAT(lines.all(), HasSubstr("hangs"));
  EXPECT_EQ(plane->start(held), errc::closed);
  held->go_on();
  EXPECT_TRUE(soon([&] { return plane.use_count() == 1; }));
}

TEST(DevicePlane, IsLeftToTheParentByAChild) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    std::error_code ec;
    remote_region again(*hosts.connection, hosts.exposed->descriptor(), {}, ec);
    std::byte one{};
    std::error_code read;
    region.read_at(0, {&one, 1}, {}, read);
    hosts.connection.reset();
    hosts.exposed.reset();
    ::_exit(ec == errc::forked_child && read == errc::forked_child ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
}

TEST(DevicePlane, PairThatIsRefusedIsNotTriedAgain) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  const auto device = cuda_program::allocate(plane_size);
  hosts.pair.reader_process.faults().fail(call::get, UCS_ERR_CANCELED);
  EXPECT_FALSE(read_plane(region, device));
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1));
  const std::uint64_t before = hosts.gets();
  EXPECT_FALSE(read_plane(region, device));
  EXPECT_EQ(hosts.gets(), before);
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_EQ(hosts.gets(), before + 1);  // the other pair
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  EXPECT_THAT(hosts.readers_lines.all(), HasSubstr("into a device's memory here"));
}

TEST(DevicePlane, ReadThatIsGivenUpLetsGoOfTheMemory) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  hosts.pair.reader_process.faults().delay(call::get, 1h);
  std::vector<std::byte> into(plane_size);
  EXPECT_EQ(read_plane(region, into, {.timeout = 50ms}), errc::timed_out);
  EXPECT_FALSE(read_plane(region, into));  // the connection of the planes was closed for that
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("was lost"));
  remote_region again = hosts.opened();
  const std::uint64_t before = hosts.gets();
  EXPECT_FALSE(read_plane(again, into));
  EXPECT_EQ(hosts.gets(), before + 1);
}

TEST(DevicePlane, GoesByMessageUntilTheProbeIsAnswered) {
  two_hosts hosts;
  hosts.pair.reader_process.faults().delay(call::get, 1h);
  remote_region region = hosts.open();
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("has not come yet"));
  // The probe's deadline.
  EXPECT_TRUE(soon(
      [&] { return region.why_not(transfer_method::rma).find("was lost") != std::string::npos; }));
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_EQ(hosts.gets(), 1U);
}

TEST(DevicePlane, RegionThatIsClosedIsRevoked) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  hosts.exposed->close();
  std::vector<std::byte> into(plane_size);
  EXPECT_EQ(read_plane(region, into), errc::revoked);
  std::error_code ec;
  region.write_at(0, into, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST(DevicePlane, KeyOfAClosedRegionReachesNothing) {
  two_hosts hosts;
  const remote_descriptor told = hosts.exposed->descriptor();
  hosts.exposed->close();
  remote_region region(*hosts.connection, told);
  std::vector<std::byte> into(plane_size);
  std::error_code ec = read_plane(region, into);
  EXPECT_TRUE(ec == errc::revoked || ec == errc::no_such_region) << ec.message();
  EXPECT_TRUE(soon([&] { return hosts.gets() > 0; }));
  EXPECT_TRUE(soon([&] {
    return region.why_not(transfer_method::rma).find("has not come yet") == std::string::npos;
  }));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
}

TEST(DevicePlane, OwnerThatIsKilledInMidReadIsALostConnection) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  hosts.pair.reader_process.faults().delay(call::get, 1h);
  std::vector<std::byte> into(plane_size);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(soon([&] { return hosts.gets() == 2; }));
  hosts.pair.owner_process.kill();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST(DevicePlane, WritesBehindAStreamOfTheProgram) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  const auto device = cuda_program::allocate_pattern(plane_size, 2);
  const auto later = cuda_program::allocate_pattern(plane_size, 3);
  CUstream_st* stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), 0);
  fake_cuda_hold_stream(stream, 1);
  EXPECT_EQ(cuMemcpyAsync(cuda_program::address(device), cuda_program::address(later), plane_size,
                          stream),
            0);
  request writing = region.start_write_at(0, device, {.cuda_stream = stream});
  std::vector<std::byte> into(plane_size);
  EXPECT_FALSE(read_plane(region, into));
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(hosts.puts(), 0U);
  fake_cuda_hold_stream(stream, 0);
  writing.wait();
  region.flush();
  EXPECT_TRUE(hosts.holds(3));
  EXPECT_EQ(hosts.puts(), 1U);
}

TEST(DevicePlane, OwnerSeesWhatWasWrittenBeforeItIsNotified) {
  two_hosts first;
  first.exposed.reset();
  fake_cuda_order_adapter_writes(0);
  first.exposed.emplace(first.pair.owner_context, first.memory, access::read_write);
  remote_region region = first.opened();
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_EQ(first.puts(), 1U);
  EXPECT_FALSE(first.holds(2));  // the device does not see it yet
  region.notify(7);
  EXPECT_EQ(first.exposed->wait_notify(first.pair.owner).value, 7U);
  EXPECT_TRUE(first.holds(2));
}

TEST(DevicePlane, NotificationWhoseFlushFailsIsAnError) {
  two_hosts hosts;
  hosts.exposed.reset();
  fake_cuda_order_adapter_writes(0);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read_write);
  remote_region region = hosts.opened();
  fake_cuda_fail("cuFlushGPUDirectRDMAWrites", 0, 1, 999);
  std::error_code ec;
  region.notify(7, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.notify(8);
  EXPECT_EQ(hosts.exposed->wait_notify(hosts.pair.owner).value, 8U);
}

TEST(DevicePlane, ReadIntoADeviceIsSeenThere) {
  two_hosts hosts;
  fake_cuda_order_adapter_writes(0);
  remote_region region = hosts.opened();
  const auto device = cuda_program::allocate(plane_size);
  EXPECT_FALSE(read_plane(region, device));
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1));
  EXPECT_EQ(hosts.gets(), 2U);
  EXPECT_EQ(hosts.pair.reader.staging().copies, 0U);
}

TEST(DevicePlane, WrittenMemoryNeedsADriverThatFlushes) {
  two_hosts hosts;
  hosts.exposed.reset();
  fake_cuda_order_adapter_writes(0);
  fake_cuda_fail("cuFlushGPUDirectRDMAWrites", 0, 1, 801);
  hosts.exposed.emplace(hosts.pair.owner_context, hosts.memory, access::read_write);
  EXPECT_THAT(hosts.owners_lines.all(), HasSubstr("cuFlushGPUDirectRDMAWrites"));
  expect_plane_staged(hosts, "no key for adapters");
}

TEST(DevicePlane, RegionThatIsOnlyWrittenIsNotProbed) {
  two_hosts hosts(by_adapters(), access::write);
  remote_region region = hosts.open();
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  region.write_at(0, pattern(plane_size, 2));
  region.flush();
  EXPECT_TRUE(hosts.holds(2));
  EXPECT_EQ(hosts.gets(), 0U);
  EXPECT_EQ(hosts.puts(), 1U);
}

TEST(DevicePlane, KeyOrAddressThatIsNoneIsNotGivenToUcx) {
  two_hosts hosts;
  for (const bool is_key : {false, true}) {
    remote_descriptor told = hosts.exposed->descriptor();
    (is_key ? told.device_rma.key : told.device_rma.worker).resize(is_key ? 5 : 9);
    remote_region region(*hosts.connection, told);
    EXPECT_THAT(region.why_not(transfer_method::rma), HasSubstr("none that UCX could read"));
    std::vector<std::byte> into(plane_size);
    EXPECT_FALSE(read_plane(region, into));
  }
  EXPECT_EQ(hosts.gets(), 0U);
}

TEST(DevicePlane, ManyReadsUnderWayAllEnd) {
  two_hosts hosts;
  remote_region region = hosts.opened();
  std::vector<std::vector<std::byte>> into(50, std::vector<std::byte>(plane_size));
  std::vector<request> reads;
  for (auto& each : into) reads.push_back(region.start_read_at(0, each));
  for (request& each : reads) each.wait();
  for (const auto& each : into) EXPECT_TRUE(holds_pattern(each, 1));
  EXPECT_EQ(hosts.gets(), 51U);
}

}  // namespace
}  // namespace ucx::test
