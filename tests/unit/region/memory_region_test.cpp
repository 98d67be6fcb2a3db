#include "ucx/memory_region.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

TEST(MemoryRegion, DescribesTheCallersMemory) {
  simulated_pair pair;
  std::vector<std::byte> memory = pattern(1000);
  const memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::write);
  EXPECT_EQ(exposed.bytes().data(), memory.data());
  EXPECT_EQ(exposed.size(), 1000U);
  EXPECT_EQ(exposed.granted(), access::write);
  EXPECT_EQ(exposed.place().kind, memory_kind::host);
  const remote_descriptor told = exposed.descriptor();
  EXPECT_EQ(told.size, 1000U);
  EXPECT_EQ(told.address, reinterpret_cast<std::uintptr_t>(memory.data()));
  EXPECT_EQ(told.granted, access::write);
  EXPECT_FALSE(told.shareable);
  EXPECT_FALSE(told.remote_key.empty());
  EXPECT_NE(told.region, 0U);
  EXPECT_NE(told.generation, 0U);
  EXPECT_EQ(remote_descriptor::decode(told.encode()), told);
}

TEST(MemoryRegion, ConstMemoryIsGrantedForReadingOnly) {
  simulated_pair pair;
  const std::vector<std::byte> memory = pattern(1000);
  const memory_region exposed(pair.owner_context, memory);
  EXPECT_EQ(exposed.granted(), access::read);
  EXPECT_EQ(exposed.descriptor().granted, access::read);
}

TEST(MemoryRegion, HasItsOwnIdAndTheOwnersIncarnation) {
  simulated_pair pair;
  std::vector<std::byte> memory(10);
  const memory_region first(pair.owner_context, std::span<std::byte>(memory), access::read);
  const memory_region second(pair.owner_context, std::span<std::byte>(memory), access::read);
  const memory_region other(pair.reader_context, std::span<std::byte>(memory), access::read);
  EXPECT_NE(first.descriptor().region, second.descriptor().region);
  EXPECT_EQ(first.descriptor().incarnation, second.descriptor().incarnation);
  EXPECT_NE(first.descriptor().incarnation, other.descriptor().incarnation);
  EXPECT_EQ(first.descriptor().host, other.descriptor().host);
}

TEST(MemoryRegion, AllocatesZeroedBytes) {
  simulated_pair pair;
  const memory_region made = memory_region::allocate(pair.owner_context, 5000, access::read_write);
  EXPECT_EQ(made.size(), 5000U);
  EXPECT_TRUE(all_bytes_are(made.bytes(), std::byte{0}));
  EXPECT_EQ(made.descriptor().size, 5000U);
  endpoint connection = pair.connect();
  remote_region region(connection, made.descriptor());
  region.write_at(4000, pattern(1000, 1));
  region.flush();
  EXPECT_TRUE(holds_pattern(made.bytes().subspan(4000), 1));
}

TEST(MemoryRegion, OfNothingIsARegion) {
  simulated_pair pair;
  const memory_region empty(pair.owner_context, std::span<std::byte>(), access::read_write);
  EXPECT_EQ(empty.size(), 0U);
  const memory_region allocated =
      memory_region::allocate(pair.owner_context, 0, access::read_write);
  EXPECT_EQ(allocated.size(), 0U);
  endpoint connection = pair.connect();
  remote_region region(connection, empty.descriptor());
  region.read_at(0, {});
  std::byte byte{};
  EXPECT_EQ(region.start_read_at(0, std::span(&byte, 1)).error(), errc::out_of_range);
}

TEST(MemoryRegion, RefusesMemoryAtAddressZero) {
  simulated_pair pair;
  const std::span<std::byte> nowhere(static_cast<std::byte*>(nullptr), 10);
  std::error_code ec;
  const memory_region none(pair.owner_context, nowhere, access::read, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_THROW(static_cast<void>(memory_region(pair.owner_context, nowhere, access::read)),
               ucx::error);
}

TEST(MemoryRegion, NeedsNoRegistrationForMessagesOnly) {
  simulated_pair_options options;
  options.owner_context.features = feature::am;
  served_region served(1000, options);
  EXPECT_EQ(served.network().count(call::mem_map), 0U);
  EXPECT_TRUE(served.exposed.descriptor().remote_key.empty());
  std::vector<std::byte> into(1000);
  served.region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  const memory_region made = memory_region::allocate(served.pair.owner_context, 10, access::read);
  EXPECT_TRUE(all_bytes_are(made.bytes(), std::byte{0}));
}

TEST(MemoryRegion, WithoutAKeyIsReachedByMessages) {
  simulated_pair pair;
  pair.owner_process.faults().fail(call::rkey_pack, UCS_ERR_UNSUPPORTED);
  std::vector<std::byte> memory = pattern(100);
  const memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  EXPECT_TRUE(exposed.descriptor().remote_key.empty());
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(MemoryRegion, FailedRegistrationSaysWhatWasTried) {
  simulated_pair pair;
  std::vector<std::byte> memory(1234);
  for (const call broken : {call::mem_map, call::rkey_pack}) {
    pair.owner_process.faults().fail(broken, UCS_ERR_NO_MEMORY);
    try {
      const memory_region none(pair.owner_context, std::span<std::byte>(memory), access::read);
      FAIL() << to_string(broken);
    } catch (const ucx::error& failed) {
      EXPECT_NE(std::string(failed.what()).find("1234 bytes"), std::string::npos) << failed.what();
    }
    EXPECT_EQ(pair.network.live().memories, 0U);
    std::error_code ec;
    pair.owner_process.faults().fail(broken, UCS_ERR_NO_MEMORY);
    const memory_region none(pair.owner_context, std::span<std::byte>(memory), access::read, {},
                             ec);
    EXPECT_TRUE(ec == errc::no_memory || ec == errc::no_lockable_memory) << ec.message();
  }
}

// RDMA hardware takes no pages that the process may not lock, or not write.

simulated_pair_options with_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
  return options;
}

TEST(RegisteredRegion, LeavesNoRegistrationBehind) {
  for (const bool hardware : {true, false}) {
    simulated_pair pair(hardware ? with_hardware() : simulated_pair_options());
    std::vector<std::byte> memory(100'000);
    memory_region exposed(pair.owner_context, std::span(memory), access::read_write);
    const std::uint64_t before = pair.owner_process.count(call::mem_map);
    exposed.close();
    const std::uint64_t expected = hardware ? 1 : 0;
    EXPECT_EQ(pair.owner_process.count(call::forget_registration), 2 * expected)
        << "also of the page that is registered next";
    EXPECT_EQ(pair.owner_process.count(call::mem_map) - before, expected)
        << "the next registration empties UCX's list";
    EXPECT_EQ(pair.network.live().memories, 0U);
  }
}

TEST(UnregisteredRegion, IsReachedByMessage) {
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    simulated_pair_options options = with_hardware();
    std::vector<std::string> warnings;
    options.owner_context.log.level = log_level::warning;
    options.owner_context.log.sink = [&](log_level, std::string_view line) {
      warnings.emplace_back(line);
    };
    simulated_pair pair(options);
    std::vector<std::byte> memory = pattern(100'000);
    pair.owner_process.faults().fail(call::mem_map, status);
    const memory_region exposed(pair.owner_context, std::span(memory), access::read_write);
    EXPECT_TRUE(exposed.descriptor().remote_key.empty());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(mentions(warnings[0], "100000 bytes are not registered for RDMA")) << warnings[0];
    EXPECT_TRUE(mentions(warnings[0], "may lock")) << warnings[0];
    const endpoint connection = pair.connect();
    remote_region region(connection, exposed.descriptor());
    EXPECT_EQ(region.transfer_method(), transfer_method::message);
    EXPECT_TRUE(
        mentions(region.why_not(transfer_method::rma), "its owner did not register the memory"));
    std::vector<std::byte> into(100'000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    const std::vector<std::byte> other(1000, std::byte{7});
    region.write_at(500, other);
    region.flush();
    EXPECT_EQ(memory[500], std::byte{7});
    EXPECT_EQ(pair.network.count(call::get) + pair.network.count(call::put), 0U);
  }
}

TEST(UnregisteredRegion, IsAnErrorWhereNothingElseWillDo) {
  simulated_pair_options strict = with_hardware();
  strict.owner_context.require_rdma = true;
  simulated_pair_options one_sided = with_hardware();
  one_sided.owner_context.features = feature::rma | feature::wakeup;
  for (const simulated_pair_options& options : {strict, one_sided}) {
    simulated_pair pair(options);
    std::vector<std::byte> memory(1000);
    std::error_code ec;
    pair.owner_process.faults().fail(call::mem_map, UCS_ERR_IO_ERROR);
    const memory_region none(pair.owner_context, std::span(memory), access::read, {}, ec);
    EXPECT_TRUE(ec == errc::io_error || ec == errc::no_lockable_memory) << ec.message();
    EXPECT_EQ(pair.network.live().memories, 0U);
  }
}

TEST(UnregisteredRegion, IsAnErrorOfAnyOtherCause) {
  simulated_pair pair(with_hardware());
  std::vector<std::byte> memory(1000);
  std::error_code ec;
  pair.owner_process.faults().fail(call::mem_map, UCS_ERR_INVALID_PARAM);
  const memory_region none(pair.owner_context, std::span(memory), access::read, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(UnregisteredRegion, IsAnErrorOfMemoryThatMayNotBeUsed) {
  const std::size_t size = 1U << 16U;
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(mapped), size);
  simulated_pair pair(with_hardware());
  const auto text_of = [&](access granted) {
    pair.owner_process.faults().fail(call::mem_map, UCS_ERR_IO_ERROR);
    try {
      const memory_region exposed(pair.owner_context, memory, granted);
    } catch (const ucx::error& failed) {
      EXPECT_TRUE(failed.code() == errc::io_error || failed.code() == errc::no_lockable_memory);
      return std::string(failed.what());
    }
    return std::string();
  };
  EXPECT_EQ(text_of(access::read), "");
  for (const access granted : {access::write, access::read_write}) {
    const std::string text = text_of(granted);
    EXPECT_TRUE(mentions(text, "registering 65536 bytes")) << text;
    EXPECT_TRUE(mentions(text, "the process may not write at 0x")) << text;
  }
  ASSERT_EQ(::mprotect(mapped, size / 2, PROT_NONE), 0);
  EXPECT_TRUE(mentions(text_of(access::read), "the process may not read at 0x"));
  ::munmap(mapped, size);
  EXPECT_TRUE(mentions(text_of(access::read), "nothing is mapped at 0x"));
  EXPECT_EQ(pair.network.live().memories, 0U);
}

TEST(UnregisteredRegion, IsAnsweredInPiecesThatUcxCopies) {
  simulated_pair_options options = with_hardware();
  std::vector<std::string> warnings;
  options.owner_context.log.level = log_level::warning;
  options.owner_context.log.sink = [&](log_level, std::string_view line) {
    warnings.emplace_back(line);
  };
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(100'000);
  const memory_region exposed(pair.owner_context, std::span(memory), access::read);
  const endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(100'000);
  region.read_at(0, std::span(into).first(1000));  // whatever else there is to say was said
  for (int read = 0; read < 2; ++read) {
    std::fill(into.begin(), into.end(), std::byte{});
    const std::uint64_t before = pair.owner_process.count(call::am_send);
    pair.owner_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    EXPECT_GE(pair.owner_process.count(call::am_send) - before, 99U) << "pieces of 1 KiB";
  }
  ASSERT_EQ(warnings.size(), 1U) << "once for a connection";
  EXPECT_TRUE(mentions(warnings[0], "goes in small pieces")) << warnings[0];
}

TEST(UnregisteredRegion, LosesTheConnectionWhereSmallPiecesFailToo) {
  simulated_pair pair(with_hardware());
  std::vector<std::byte> memory = pattern(100'000);
  const memory_region exposed(pair.owner_context, std::span(memory), access::read);
  const endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(100'000);
  region.read_at(0, std::span(into).first(1000));
  pair.owner_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR, 1);
  pair.owner_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR, 2);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST(UnregisteredRegion, IsNoCauseOfAFailureOverOtherLanes) {
  // The context has hardware, and this connection goes without.
  simulated_pair_options options = with_hardware();
  options.link.resources.push_back("tcp/eth0");
  options.link.lanes = {"tcp/eth0"};
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(100'000);
  const memory_region exposed(pair.owner_context, std::span(memory), access::read);
  const endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  std::vector<std::byte> into(100'000);
  region.read_at(0, std::span(into).first(1000));
  pair.owner_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST(MemoryRegion, AllocationThatDoesNotFitIsOutOfMemory) {
  simulated_pair_options options;
  options.link.allocation_limit = 1U << 20U;
  simulated_pair pair(options);
  std::error_code ec;
  const memory_region none =
      memory_region::allocate(pair.owner_context, 2U << 20U, access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  EXPECT_THROW((void)memory_region::allocate(pair.owner_context, 2U << 20U, access::read),
               ucx::error);
  EXPECT_EQ(pair.network.live().memories, 0U);
}

TEST(MemoryRegion, AllocationInSharedMemoryThatDoesNotFitSaysSo) {
  simulated_pair_options options;
  options.link.allocation_limit = 1U << 20U;
  options.link.shared_memory = true;
  options.link.resources = {"self/memory0", "posix/memory", "cma/memory"};
  options.owner_context.transports = {"posix", "cma", "self"};
  options.reader_context.transports = {"posix", "cma", "self"};
  simulated_pair pair(options);
  std::error_code ec;
  const memory_region none =
      memory_region::allocate(pair.owner_context, 2U << 20U, access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_shared_memory);
  const memory_region made = memory_region::allocate(pair.owner_context, 1000, access::read);
  EXPECT_TRUE(made.descriptor().shareable);
}

TEST(MemoryRegion, CloseIsIdempotentAndForgetsTheMemory) {
  simulated_pair pair;
  std::vector<std::byte> memory(100);
  memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  EXPECT_EQ(pair.network.live().memories, 1U);
  exposed.close();
  exposed.close();
  EXPECT_EQ(pair.network.live().memories, 0U);
  EXPECT_EQ(exposed.size(), 0U);
  EXPECT_EQ(exposed.descriptor().region, 0U);
}

TEST(MemoryRegion, MoveAssignmentClosesWhatWasThere) {
  simulated_pair pair;
  std::vector<std::byte> memory(100);
  memory_region first(pair.owner_context, std::span<std::byte>(memory), access::read);
  memory_region second(pair.owner_context, std::span<std::byte>(memory).first(10), access::read);
  first = std::move(second);
  EXPECT_EQ(first.size(), 10U);
  EXPECT_EQ(pair.network.live().memories, 1U);
}

TEST(MemoryRegion, EveryWorkerOfTheContextServesIt) {
  served_region served(100);
  worker other(served.pair.owner_context);
  served.pair.owner_process.on_pump([&] {
    served.pair.owner.progress();
    other.progress();
  });
  {
    endpoint connection(served.pair.reader, other.address());
    remote_region region(connection, served.exposed.descriptor());
    std::vector<std::byte> into(100);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    connection.close();
  }
  served.pair.owner_process.on_pump([&] { served.pair.owner.progress(); });
}

TEST(MemoryRegion, RegionOfADeadContextIsRefused) {
  simulated_pair pair;
  const context taken = std::move(pair.owner_context);
  std::vector<std::byte> memory(100);
  std::error_code ec;
  const memory_region none(pair.owner_context, std::span<std::byte>(memory), access::read, {}, ec);
  EXPECT_EQ(ec, errc::closed);
}

// What dies with the call can not be exposed; views of what lives on, and what has a name, can.
using vector = std::vector<std::byte>;
using array = std::array<std::byte, 8>;
static_assert(!std::is_constructible_v<memory_region, const context&, vector, access>);
static_assert(!std::is_constructible_v<memory_region, const context&, vector>);
static_assert(!std::is_constructible_v<memory_region, const context&, vector, std::error_code&>);
static_assert(!std::is_constructible_v<memory_region, const context&, array, access>);
static_assert(std::is_constructible_v<memory_region, const context&, vector&, access>);
static_assert(std::is_constructible_v<memory_region, const context&, const vector&>);
static_assert(std::is_constructible_v<memory_region, const context&, array&, access>);
static_assert(std::is_constructible_v<memory_region, const context&, std::byte (&)[8], access>);
static_assert(std::is_constructible_v<memory_region, const context&, std::span<std::byte>, access>);
static_assert(std::is_constructible_v<memory_region, const context&, std::span<const std::byte>,
                                      std::error_code&>);

}  // namespace
}  // namespace ucx::test
