// What a handle of a region that is reached without messages can do beyond single reads and writes,
// over the simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "connection/endpoint_core.hpp"
#include "support/basics/mentions.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

// Memory that is mapped: nobody is asked.

simulated_pair_options mapped() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.shared_memory = true;
  options.link.resources = {"posix/memory", "cma/memory", "self/memory0"};
  options.owner_context.transports = {"posix", "cma", "self"};
  options.reader_context.transports = {"posix", "cma", "self"};
  options.owner_context.features = feature::rma | feature::wakeup;
  options.reader_context.features = feature::rma | feature::wakeup;
  return options;
}

TEST(MappedRegion, IsChangedByThisProcessor) {
  simulated_pair pair(mapped());
  memory_region owned = memory_region::allocate(pair.owner_context, 4096, access::read_write);
  endpoint connection = pair.connect();
  remote_region region(connection, owned.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::rma);
  EXPECT_EQ(region.why_not(transfer_method::rma), "");
  EXPECT_EQ(region.why_not(transfer_method::message), "the context was made without feature::am");
  pair.owner_process.stop();
  remote_atomic<std::uint64_t> number(region, 8);
  number.store(5);
  EXPECT_EQ(number.fetch_add(2), 5U);
  std::uint64_t found = 0;
  std::memcpy(&found, owned.bytes().data() + 8, sizeof found);
  EXPECT_EQ(found, 7U);
  std::error_code ec;
  remote_atomic<std::uint64_t>(region, 4096).load({}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.notify(1, {}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
  std::vector<std::byte> from = pattern(100);
  region.post_write_at(0, from);
  connection.fence();
  EXPECT_EQ(pair.network.count(call::worker_fence), 1U);
  region.flush();
  EXPECT_TRUE(holds_pattern(owned.bytes().first(100)));
  pair.owner_process.resume();
}

// Without CMA, the reader's processor also moves the bytes.

simulated_pair_options copied() {
  simulated_pair_options options = mapped();
  for (context_options* each : {&options.owner_context, &options.reader_context}) {
    each->transports = {"posix", "self"};
    each->features = feature::rma | feature::am | feature::wakeup;
  }
  options.link.resources = {"posix/memory", "self/memory0"};
  return options;
}

TEST(CopiedRegion, DoesNotOvertakeMessagesFromBeforeAFence) {
  simulated_pair pair(copied());
  memory_region owned = memory_region::allocate(pair.owner_context, 4096, access::read_write);
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_region region(connection, owned.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::rma);
  const std::vector<std::byte> from = pattern(100);
  const std::uint64_t sent = pair.reader_process.count(call::am_send);
  region.write_batch(std::array{write_piece{0, from}, write_piece{200, from}});
  EXPECT_EQ(pair.reader_process.count(call::am_send), sent) << "nobody was to be asked";
  EXPECT_TRUE(holds_pattern(owned.bytes().subspan(200, 100)));

  std::uint64_t heard_before = 0;
  owned.on_notify(
      [&](const notification&) { heard_before = std::to_integer<unsigned>(owned.bytes()[300]); });
  request told = region.start_notify(1);
  connection.fence();
  const std::byte mark{9};
  request write = region.start_write_at(300, std::span(&mark, 1));
  EXPECT_NE(owned.bytes()[300], mark) << "it overtook the notification";
  region.flush();
  told.wait();
  EXPECT_EQ(heard_before, 0U);
  EXPECT_EQ(owned.bytes()[300], mark);
}

// Hardware: the adapter moves the bytes, the owner's processor does atomics.

TEST(HardwareRegion, KeepsItsOrderAcrossAFence) {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "tcp/lo", "rc_mlx5/mlx5_0:1"};
  simulated_pair pair(options);
  std::vector<std::uint64_t> numbers(1000);
  memory_region owned(pair.owner_context, std::as_writable_bytes(std::span(numbers)),
                      access::read_write);
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_region region(connection, owned.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::rma);
  const std::uint64_t value = 41;
  region.post_write_at(0, std::as_bytes(std::span(&value, 1)));
  connection.fence();
  remote_atomic<std::uint64_t> number(region, 0);
  EXPECT_EQ(number.fetch_add(1), 41U);
  // And the other way round: behind a message, RMA takes the message's way.
  std::uint64_t previous = 0;
  request add = number.start(atomic_operation::add, 1, &previous);
  connection.fence();
  const std::uint64_t gets = pair.network.count(call::get);
  std::uint64_t read = 0;
  region.read_at(0, std::as_writable_bytes(std::span(&read, 1)));
  EXPECT_EQ(read, 43U);
  EXPECT_EQ(pair.network.count(call::get), gets);
  add.wait();
  region.read_at(0, std::as_writable_bytes(std::span(&read, 1)));
  EXPECT_EQ(pair.network.count(call::get), gets + 1);
  // Notifications travel behind RMA, too.
  std::uint64_t seen = 0;
  owned.on_notify([&](const notification&) { seen = numbers[0]; });
  const std::uint64_t last = 99;
  region.post_write_at(0, std::as_bytes(std::span(&last, 1)));
  region.notify(1);
  EXPECT_EQ(seen, 99U);
  // Many pieces, one request.
  std::vector<std::byte> into(800);
  std::vector<read_piece> pieces;
  for (std::size_t i = 0; i < 100; ++i) {
    pieces.push_back({i * 8, std::span(into).subspan(i * 8, 8)});
  }
  region.read_batch(pieces);
  EXPECT_EQ(std::memcmp(into.data(), numbers.data(), into.size()), 0);
}

TEST(HardwareRegion, IsReadIntoUnregisteredMemoryByMessage) {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  std::vector<std::string> warnings;
  options.reader_context.log.level = log_level::warning;
  options.reader_context.log.sink = [&](log_level, std::string_view line) {
    warnings.emplace_back(line);
  };
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(100'000);
  memory_region owned(pair.owner_context, std::span(memory), access::read);
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_region region(connection, owned.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(100'000);
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    std::fill(into.begin(), into.end(), std::byte{});
    pair.reader_process.faults().fail(call::get, status);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
  }
  ASSERT_EQ(warnings.size(), 1U) << "once for a region";
  EXPECT_TRUE(mentions(warnings[0], "a read goes by message")) << warnings[0];
  const std::uint64_t gets = pair.network.count(call::get);
  region.read_at(0, into);
  EXPECT_EQ(pair.network.count(call::get), gets + 1) << "the next one is tried again";
}

TEST(HardwareRegion, LeavesNoWordsOfWhatItsConnectionSurvives) {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(1000);
  memory_region owned(pair.owner_context, std::span(memory), access::read_write);
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_region region(connection, owned.descriptor());
  std::vector<std::byte> into(1000);
  const auto words = [&] { return detail::core_access::core(connection)->words(); };
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    pair.reader_process.faults().fail(call::get, status);
    region.read_at(0, into);
    EXPECT_EQ(words(), "") << "it went by message";
    std::error_code ec;
    pair.reader_process.faults().fail_late(call::get, status);
    region.read_at(0, into, {}, ec);
    EXPECT_TRUE(ec);
    EXPECT_EQ(words(), "") << "it failed alone";
    pair.reader_process.faults().fail(call::put, status);
    region.write_at(0, into, {}, ec);
    EXPECT_TRUE(ec);
    EXPECT_EQ(words(), "");
    region.read_at(0, into, {}, ec);
    EXPECT_FALSE(ec) << "the connection stands";
  }
  pair.reader_process.faults().fail_late(call::get, UCS_ERR_ENDPOINT_TIMEOUT);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_TRUE(mentions(words(), "UCX: ")) << "that is the connection's";
}

TEST(HardwareRegion, LosesItsConnectionWhateverUcxCallsIt) {
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_CANCELED, UCS_ERR_TIMED_OUT,
                                    UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET}) {
    for (const bool writes : {false, true}) {
      SCOPED_TRACE(ucs_status_string(status));
      simulated_pair_options options;
      options.link.emulated_rma = false;
      options.link.death_status = status;
      options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
      simulated_pair pair(options);
      std::vector<std::byte> memory = pattern(100'000);
      memory_region owned(pair.owner_context, std::span(memory), access::read_write);
      endpoint connection = pair.connect();
      connection.wait_connected();
      remote_region region(connection, owned.descriptor());
      ASSERT_EQ(region.transfer_method(), transfer_method::rma);
      std::vector<std::byte> bytes(100'000);
      pair.reader_process.faults().delay(writes ? call::put : call::get,
                                         std::chrono::milliseconds(20));
      request moved = writes ? region.start_write_at(0, bytes) : region.start_read_at(0, bytes);
      pair.owner_process.kill();
      std::error_code ec;
      moved.wait(ec);
      EXPECT_EQ(ec, errc::connection_reset) << "UCX ends the transfer before it tells of the loss";
      EXPECT_EQ(connection.status(), errc::connection_reset);
    }
  }
}

TEST(HardwareRegion, OfAKeyThatUcxCouldNotReadIsNotOpened) {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(1000);
  memory_region owned(pair.owner_context, std::span(memory), access::read);
  endpoint connection = pair.connect();
  connection.wait_connected();
  remote_descriptor cut = owned.descriptor();
  cut.remote_key.resize(10);
  std::error_code ec;
  const remote_region region(connection, cut, {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::bad_descriptor);
  EXPECT_EQ(pair.network.count(call::ep_rkey_unpack), 0U) << "UCX never sees such";
}

// Hardware without GET and PUT: UCX would ask the owner, as messages do.

simulated_pair_options datagrams_only() {
  simulated_pair_options options;
  options.link.resources = {"self/memory0", "ud_verbs/rxe0:1"};
  return options;
}

TEST(DatagramRegion, GoesByMessageAndSaysWhy) {
  simulated_pair_options options = datagrams_only();
  std::vector<std::string> warnings;
  options.reader_context.log.level = log_level::info;
  options.reader_context.log.sink = [&](log_level level, std::string_view line) {
    if (level == log_level::warning) warnings.emplace_back(line);
  };
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(1000);
  memory_region owned(pair.owner_context, std::span(memory), access::read_write);
  endpoint connection = pair.connect({.terms = connection_terms{.require_rdma = true}});
  connection.wait_connected();
  EXPECT_TRUE(connection.report().zero_copy) << "it is hardware, which sends in place";
  EXPECT_FALSE(connection.report().native_rma);
  remote_region region(connection, owned.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  const std::string why = region.why_not(transfer_method::rma);
  EXPECT_TRUE(mentions(why, "the hardware of ud_verbs/rxe0:1 carries messages only")) << why;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(mentions(warnings[0], why)) << warnings[0];
  std::vector<std::byte> into(1000);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(pair.network.count(call::get), 0U);
  std::error_code ec;
  const remote_region refused(connection, owned.descriptor(),
                              {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(DatagramRegion, IsOneSidedBesideATransportThatReadsMemory) {
  simulated_pair_options options = datagrams_only();
  options.link.emulated_rma = false;
  options.link.resources.push_back("rc_verbs/rxe0:1");
  simulated_pair pair(options);
  std::vector<std::byte> memory = pattern(1000);
  memory_region owned(pair.owner_context, std::span(memory), access::read);
  endpoint connection = pair.connect();
  connection.wait_connected();
  EXPECT_TRUE(connection.report().native_rma);
  const remote_region region(connection, owned.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
}

}  // namespace
}  // namespace ucx::test
