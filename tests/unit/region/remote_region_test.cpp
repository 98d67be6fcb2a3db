#include "ucx/remote_region.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "region/remote/region_read.hpp"
#include "region/remote/remote_region_core.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t piece = 4096;
const std::error_code no_error;

/// Sizes around the borders of pieces.
std::vector<std::size_t> sizes() {
  return {0,
          1,
          7,
          piece - 1,
          piece,
          piece + 1,
          2 * piece - 1,
          2 * piece,
          2 * piece + 1,
          4 * piece,
          5 * piece + 1,
          64 * piece - 1};
}

TEST(RemoteRegion, TellsWhatItsDescriptorSays) {
  served_region served(100, {}, access::read);
  EXPECT_EQ(served.region.size(), 100U);
  EXPECT_EQ(served.region.granted(), access::read);
  EXPECT_EQ(served.region.kind(), memory_kind::host);
  EXPECT_EQ(served.region.transfer_method(), transfer_method::message);
  EXPECT_FALSE(served.region.status());
  EXPECT_NE(served.region.description().find("100 bytes"), std::string::npos);
}

TEST(RemoteRegion, ReadsEverySizeAtEveryAlignment) {
  served_region served(80 * piece, with_pieces_of(piece));
  for (const std::size_t size : sizes()) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{piece},
                                       std::uint64_t{80 * piece - size}}) {
      std::vector<std::byte> into(size + 2, std::byte{0xee});
      served.region.read_at(offset, std::span(into).subspan(1, size));
      ASSERT_TRUE(holds_pattern(std::span(into).subspan(1, size), 0, offset))
          << size << " bytes at " << offset;
      ASSERT_EQ(into.front(), std::byte{0xee});
      ASSERT_EQ(into.back(), std::byte{0xee});
    }
  }
}

TEST(RemoteRegion, WritesEverySizeAtEveryAlignment) {
  served_region served(80 * piece, with_pieces_of(piece));
  std::vector<std::byte> model = served.memory;
  std::uint64_t seed = 1;
  for (const std::size_t size : sizes()) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{piece},
                                       std::uint64_t{80 * piece - size}}) {
      const std::vector<std::byte> from = pattern(size, ++seed);
      served.region.write_at(offset, from);
      served.region.flush();
      std::copy(from.begin(), from.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
      ASSERT_EQ(served.memory, model) << size << " bytes at " << offset;
      ASSERT_EQ(served.region.first_unconfirmed(), std::nullopt);
    }
  }
}

TEST(RemoteRegion, DefaultSegmentsCarryWhatFitsThem) {
  served_region served(std::size_t{5} << 20U);
  std::vector<std::byte> into(served.memory.size());
  served.region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(served.pair.owner_process.count(call::am_recv_data), 0U);
}

TEST(RemoteRegion, EmptyAccessIsDoneAtOnceAndSendsNothing) {
  served_region served(100);
  served.connection.wait_connected();
  const std::uint64_t sent = served.network().count(call::am_send);
  EXPECT_TRUE(served.region.start_read_at(0, {}).done());
  EXPECT_TRUE(served.region.start_read_at(100, {}).done());
  EXPECT_TRUE(served.region.start_write_at(100, {}).done());
  EXPECT_TRUE(served.region.start_flush().done());
  EXPECT_EQ(served.network().count(call::am_send), sent);
}

TEST(RemoteRegion, RefusesWhatReachesOutside) {
  served_region served(100);
  std::vector<std::byte> bytes(10);
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {std::uint64_t{91}, std::uint64_t{100}, std::uint64_t{101},
                                     most, most - 9, most - 5, std::uint64_t{1} << 63U}) {
    EXPECT_EQ(served.region.start_read_at(offset, bytes).error(), errc::out_of_range) << offset;
    EXPECT_EQ(served.region.start_write_at(offset, bytes).error(), errc::out_of_range) << offset;
  }
  EXPECT_EQ(served.region.start_read_at(101, {}).error(), errc::out_of_range);
  EXPECT_TRUE(holds_pattern(served.memory));
  served.region.read_at(90, bytes);
}

TEST(RemoteRegion, RefusesWhatWasNotGranted) {
  std::vector<std::byte> bytes(10);
  {
    served_region readable(100, {}, access::read);
    EXPECT_EQ(readable.region.start_write_at(0, bytes).error(), errc::permission_denied);
    readable.region.read_at(0, bytes);
  }
  {
    served_region writable(100, {}, access::write);
    EXPECT_EQ(writable.region.start_read_at(0, bytes).error(), errc::permission_denied);
    writable.region.write_at(0, bytes);
    writable.region.flush();
  }
}

TEST(RemoteRegion, ErrorTextNamesOperationPlaceAndRegion) {
  served_region served(100);
  std::vector<std::byte> bytes(10);
  try {
    served.region.read_at(95, bytes);
    FAIL();
  } catch (const ucx::error& failed) {
    const std::string text = failed.what();
    EXPECT_EQ(failed.code(), errc::out_of_range);
    EXPECT_NE(text.find("read of 10 bytes at offset 95"), std::string::npos) << text;
    EXPECT_NE(text.find("(100 bytes)"), std::string::npos) << text;
  }
}

TEST(RemoteRegion, OwnerRefusesAForgedDescriptor) {
  served_region served(100, {}, access::read);
  const remote_descriptor honest = served.exposed.descriptor();
  std::vector<std::byte> bytes(10);
  const auto read_with = [&](const remote_descriptor& forged, std::uint64_t offset) {
    std::error_code ec;
    remote_region(served.connection, forged).read_at(offset, bytes, {}, ec);
    return ec;
  };
  remote_descriptor forged = honest;
  forged.size = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(read_with(forged, 91), errc::out_of_range);
  EXPECT_EQ(read_with(forged, std::numeric_limits<std::uint64_t>::max() - 10), errc::out_of_range);
  EXPECT_EQ(read_with(forged, std::uint64_t{1} << 63U), errc::out_of_range);
  forged = honest;
  ++forged.incarnation;
  EXPECT_EQ(read_with(forged, 0), errc::stale_region);
  forged = honest;
  ++forged.generation;
  EXPECT_EQ(read_with(forged, 0), errc::stale_region);
  forged = honest;
  forged.region = 1000;
  EXPECT_EQ(read_with(forged, 0), errc::no_such_region);
  forged.region = 0;
  EXPECT_EQ(read_with(forged, 0), errc::no_such_region);
  forged = honest;
  forged.granted = access::read_write;
  remote_region writable(served.connection, forged);
  writable.write_at(0, bytes);
  std::error_code ec;
  writable.flush({}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_TRUE(holds_pattern(served.memory));
  EXPECT_FALSE(served.connection.status());
}

TEST(RemoteRegion, MoreQuestionsThanFitTheWireQueueAndComplete) {
  served_region served(100000);
  std::vector<std::vector<std::byte>> into(1500, std::vector<std::byte>(8));
  std::vector<request> reads;
  for (std::size_t i = 0; i < into.size(); ++i) {
    reads.push_back(served.region.start_read_at(i * 8, into[i]));
  }
  for (request& each : reads) each.wait();
  for (std::size_t i = 0; i < into.size(); ++i) ASSERT_TRUE(holds_pattern(into[i], 0, i * 8));
}

TEST(RemoteRegion, NoMoreThan256QuestionsAreOnTheWire) {
  served_region served(100000);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  const std::uint64_t before = served.pair.reader_process.count(call::am_send);
  std::vector<std::byte> into(8);
  std::vector<request> reads;
  for (int i = 0; i < 1000; ++i) reads.push_back(served.region.start_read_at(0, into));
  EXPECT_EQ(served.pair.reader_process.count(call::am_send) - before, 256U);
  served.pair.owner_process.resume();
  for (request& each : reads) each.wait();
}

TEST(RemoteRegion, QuestionsBeforeTheConnectionIsThereWaitForIt) {
  served_region served(1000);
  std::vector<std::byte> into(1000);
  request read = served.region.start_read_at(0, into);
  EXPECT_FALSE(read.done());
  read.wait();
  EXPECT_TRUE(holds_pattern(into));
}

TEST(RemoteRegion, ReadsSeeWritesThatWereFlushed) {
  served_region served(10000, with_pieces_of(piece));
  const std::vector<std::byte> from = pattern(10000, 3);
  served.region.write_at(0, from);
  served.region.flush();
  std::vector<std::byte> into(10000);
  served.region.read_at(0, into);
  EXPECT_EQ(into, from);
}

TEST(RemoteRegion, FlushWithoutWritesCostsNothing) {
  served_region served(100);
  served.connection.wait_connected();
  const std::uint64_t sent = served.network().count(call::am_send);
  const std::uint64_t flushed = served.network().count(call::ep_flush);
  served.region.flush();
  EXPECT_EQ(served.network().count(call::am_send), sent);
  EXPECT_EQ(served.network().count(call::ep_flush), flushed);
}

TEST(RemoteRegion, FlushReportsTheFirstFailureOnceAndStartsAfresh) {
  served_region served(100);
  std::vector<std::byte> bytes = pattern(10, 9);
  served.region.write_at(0, bytes);
  served.region.flush();
  served.exposed.close();
  served.region.write_at(20, bytes);
  served.region.write_at(40, bytes);
  std::error_code ec;
  served.region.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(served.region.first_unconfirmed(), 20U);
  served.region.flush({}, ec);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(served.connection.status());
}

TEST(RemoteRegion, NamesTheFirstByteThatMayBeMissing) {
  served_region served(100 * piece, with_pieces_of(piece));
  served.connection.wait_connected();
  EXPECT_EQ(served.region.first_unconfirmed(), std::nullopt);
  served.pair.owner_process.stop();
  const std::vector<std::byte> from = pattern(piece, 2);
  request first = served.region.start_write_at(50 * piece, from);
  request second = served.region.start_write_at(0, from);
  EXPECT_EQ(served.region.first_unconfirmed(), 50 * piece);
  served.pair.owner_process.resume();
  served.region.flush();
  EXPECT_EQ(served.region.first_unconfirmed(), std::nullopt);
  first.wait();
  second.wait();
}

TEST(RemoteRegion, SharedHandlesFlushTheirOwnWritesOnly) {
  served_region served(100);
  remote_region other = served.region.share();
  EXPECT_EQ(other.size(), 100U);
  std::vector<std::byte> bytes = pattern(10, 4);
  served.exposed.close();
  served.region.write_at(0, bytes);
  std::error_code ec;
  other.flush({}, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(other.first_unconfirmed(), std::nullopt);
  served.region.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST(RemoteRegion, RevokedRegionIsSoForReads) {
  served_region served(100);
  std::vector<std::byte> bytes(10);
  served.region.read_at(0, bytes);
  served.exposed.close();
  std::error_code ec;
  served.region.read_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_FALSE(served.connection.status());
}

TEST(RemoteRegion, ClosedRegionCancelsWhatIsInFlight) {
  served_region served(100);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> bytes(10);
  remote_region other = served.region.share();
  request read = served.region.start_read_at(0, bytes);
  request shared = other.start_read_at(0, bytes);
  served.region.close();
  EXPECT_EQ(read.error(), errc::canceled);
  EXPECT_EQ(shared.error(), errc::canceled);
  EXPECT_EQ(served.region.status(), errc::closed);
  EXPECT_EQ(other.status(), errc::closed);
  EXPECT_EQ(other.start_read_at(0, bytes).error(), errc::closed);
  EXPECT_EQ(served.region.start_write_at(0, bytes).error(), errc::closed);
  served.region.close();
  served.pair.owner_process.resume();
  EXPECT_FALSE(served.connection.status());
}

TEST(RemoteRegion, ClosingOneRegionLeavesTheOthersOfTheConnection) {
  served_region served(100);
  served.connection.wait_connected();
  remote_region other(served.connection, served.exposed.descriptor());
  std::vector<std::byte> bytes(10);
  request read = other.start_read_at(5, bytes);
  served.region.close();
  read.wait();
  EXPECT_TRUE(holds_pattern(bytes, 0, 5));
}

TEST(RemoteRegion, FlushAfterCloseTellsThatItIsClosed) {
  served_region served(100);
  std::vector<std::byte> bytes(10);
  served.region.close();
  std::error_code ec;
  served.region.flush({}, ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST(RemoteRegion, MovedFromHandleIsClosed) {
  served_region served(100);
  std::vector<std::byte> bytes(10);
  remote_region taken = std::move(served.region);
  EXPECT_EQ(served.region.status(), errc::closed);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(served.region.start_read_at(0, bytes).error(), errc::closed);
  EXPECT_EQ(served.region.start_write_at(0, bytes).error(), errc::closed);
  EXPECT_EQ(served.region.size(), 0U);
  EXPECT_EQ(served.region.start_flush().error(), errc::closed);
  served.region.close();
  taken.read_at(0, bytes);
}

TEST(RemoteRegion, NeedsAConnectionThatLives) {
  served_region served(100);
  served.connection.close();
  std::error_code ec;
  const remote_region late(served.connection, served.exposed.descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(remote_region(served.connection, served.exposed.descriptor()), ucx::error);
}

TEST(RemoteRegion, EmulatedRmaIsNotAWay) {
  served_region served(100);
  std::error_code ec;
  const remote_region forced(served.connection, served.exposed.descriptor(),
                             {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  try {
    const remote_region thrown(served.connection, served.exposed.descriptor(),
                               {.transfer_method = transfer_method::rma});
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_NE(std::string(failed.what()).find("emulates"), std::string::npos) << failed.what();
  }
}

/// Sets `UCXIO_TRANSFER_METHOD` while it lives.
struct forced_way {
  explicit forced_way(const char* value) { ::setenv("UCXIO_TRANSFER_METHOD", value, 1); }
  ~forced_way() { ::unsetenv("UCXIO_TRANSFER_METHOD"); }
  forced_way(const forced_way&) = delete;
  forced_way& operator=(const forced_way&) = delete;
};

simulated_pair_options one_host() {
  simulated_pair_options options;
  options.link.shared_memory = true;
  options.link.resources = {"self/memory0", "posix/memory", "cma/memory"};
  options.owner_context.transports = {"posix", "cma", "self"};
  options.reader_context.transports = {"posix", "cma", "self"};
  return options;
}

TEST(RemoteRegion, IsCopiedWithoutUcxWhereMappedWithoutCma) {
  // UCX would ask the owner, who need not make progress for one-sided operations.
  simulated_pair_options options = one_host();
  options.link.resources = {"self/memory0", "posix/memory"};
  options.owner_context.transports = {"posix", "self"};
  options.reader_context.transports = {"posix", "self"};
  simulated_pair pair(options);
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, 1000, access::read_write);
  fill_pattern(exposed.bytes());
  const endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(100);
  EXPECT_TRUE(region.start_read_at(900, into).done());
  EXPECT_TRUE(holds_pattern(into, 0, 900));
  std::fill(into.begin(), into.end(), std::byte{0x77});
  EXPECT_TRUE(region.start_write_at(100, into).done());
  region.flush();
  EXPECT_TRUE(all_bytes_are(exposed.bytes().subspan(100, 100), std::byte{0x77}));
  EXPECT_TRUE(holds_pattern(exposed.bytes().subspan(200), 0, 200));
  EXPECT_EQ(pair.reader_process.count(call::get) + pair.reader_process.count(call::put), 0U);
  std::error_code ec;
  region.read_at(901, into, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.close();
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST(RemoteRegion, EnvironmentForcesAWayWhereTheOptionsLeaveItOpen) {
  simulated_pair pair(one_host());
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, 1000, access::read_write);
  const endpoint connection = pair.connect();
  EXPECT_EQ(remote_region(connection, exposed.descriptor()).transfer_method(),
            transfer_method::rma);
  const forced_way message("message");
  remote_region region(connection, exposed.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  std::vector<std::byte> into(1000);
  region.read_at(0, into);
  EXPECT_EQ(
      remote_region(connection, exposed.descriptor(), {.transfer_method = transfer_method::rma})
          .transfer_method(),
      transfer_method::rma);
}

TEST(RemoteRegion, EnvironmentForcesRmaOrFails) {
  served_region served(100);
  const forced_way rma("rma");
  std::error_code ec;
  const remote_region none(served.connection, served.exposed.descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(RemoteRegion, MisspelledMethodOfTheEnvironmentIsNamed) {
  served_region served(100);
  const forced_way misspelt("massage");
  std::error_code ec;
  const remote_region none(served.connection, served.exposed.descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  try {
    const remote_region thrown(served.connection, served.exposed.descriptor());
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_NE(std::string(failed.what()).find("UCXIO_TRANSFER_METHOD is \"massage\""),
              std::string::npos)
        << failed.what();
  }
  // Who says it in code does not look there.
  const remote_region fine(served.connection, served.exposed.descriptor(),
                           {.transfer_method = transfer_method::message});
  EXPECT_EQ(fine.transfer_method(), transfer_method::message);
}

TEST(RemoteRegion, RefusedKeyIsABadDescriptorForRma) {
  simulated_pair pair(one_host());
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, 1000, access::read_write);
  const endpoint connection = pair.connect();
  pair.reader_process.faults().fail(call::ep_rkey_unpack, UCS_ERR_INVALID_PARAM, 0);
  std::error_code ec;
  const remote_region none(connection, exposed.descriptor(),
                           {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::bad_descriptor);
  EXPECT_EQ(remote_region(connection, exposed.descriptor()).transfer_method(),
            transfer_method::message);
}

TEST(RemoteRegion, NeedsTheFeatureOfItsWay) {
  simulated_pair_options options;
  options.reader_context.features = feature::am;
  served_region served(100, options);
  std::error_code ec;
  const remote_region no_rma(served.connection, served.exposed.descriptor(),
                             {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
}

TEST(RemoteRegion, NeedsMessagesWhereRmaIsNotReal) {
  simulated_pair_options options;
  options.reader_context.features = feature::rma;
  simulated_pair pair(options);
  std::vector<std::byte> memory(100);
  const memory_region exposed(pair.owner_context, memory, access::read_write);
  const endpoint connection = pair.connect();
  for (const transfer_method wanted : {transfer_method::automatic, transfer_method::message}) {
    std::error_code ec;
    const remote_region none(connection, exposed.descriptor(), {.transfer_method = wanted}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
  }
}

TEST(RemoteRegion, ReadThatBeginsOnALostConnectionFailsAtOnce) {
  served_region served(100);
  served.connection.wait_connected();
  const auto core = detail::core_access::core(served.region);
  served.pair.owner_process.kill();
  ASSERT_TRUE(served.network().run_until([&] { return bool(served.region.status()); }));
  detail::worker_core& worker = core->endpoint().worker();
  std::vector<std::byte> into(100);
  const std::lock_guard guard(worker.lock());
  detail::region_read* read = worker.pool_of<detail::region_read>().take();
  read->begin(core->shared_from_this(), 0, into, worker.deadline_after(1s));
  EXPECT_EQ(read->error(), errc::connection_reset);
  EXPECT_FALSE(core->endpoint().answers_pending());
  const auto held = read->let_go();
  read->release();
}

TEST(RemoteRegion, RandomAccessesAgreeWithAModel) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    simulated_pair_options options = with_pieces_of(piece);
    options.seed = seed;
    served_region served(20 * piece, options);
    served.network().faults().inline_completion(0.1 * static_cast<double>(seed));
    served.network().faults().reorder(0.3);
    std::vector<std::byte> model = served.memory;
    std::mt19937_64 random(seed);
    for (int round = 0; round < 150; ++round) {
      const std::uint64_t offset = random() % model.size();
      const std::size_t size = random() % (model.size() - offset);
      if (random() % 2 == 0) {
        const std::vector<std::byte> from = pattern(size, random());
        served.region.write_at(offset, from);
        std::copy(from.begin(), from.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
        served.region.flush();
      } else {
        std::vector<std::byte> into(size);
        served.region.read_at(offset, into);
        ASSERT_TRUE(std::equal(into.begin(), into.end(),
                               model.begin() + static_cast<std::ptrdiff_t>(offset)));
      }
    }
    ASSERT_EQ(served.memory, model);
  }
}

}  // namespace
}  // namespace ucx::test
