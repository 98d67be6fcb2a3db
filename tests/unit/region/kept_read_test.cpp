// Emulated reads of peers that have UCX alone: where they land, and how many bytes are under way.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/staged_transfers.hpp"
#include "foreign_pair.hpp"
#include "region/remote/remote_region_core.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/stream.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

// A stream's reads share its buffers with UCX, which then needs no other memory.

using shared_bytes = std::shared_ptr<std::vector<std::byte>>;

request start_kept(const remote_region& region, const shared_bytes& into,
                   const io_options& options = {}) {
  const auto& core = detail::core_access::core(region);
  const std::lock_guard guard(core->endpoint().worker().lock());
  std::error_code ec;
  detail::operation* const started = core->start_read_kept(0, *into, into, options, ec);
  EXPECT_FALSE(ec) << ec.message();
  return started == nullptr ? request() : detail::core_access::make_request(started);
}

TEST(KeptRead, LandsInItsMemory) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  const remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  const auto into = std::make_shared<std::vector<std::byte>>(long_foreign_size);
  std::vector<std::byte> other(long_foreign_size);
  const std::uint64_t before = all.pair.reader_process.count(call::get);
  {
    request read = start_kept(region, into);
    EXPECT_FALSE(read.rebind(other));
    read.wait();
  }
  EXPECT_TRUE(holds_pattern(*into));
  EXPECT_EQ(all.pair.reader_process.count(call::get) - before,
            long_foreign_size / detail::staged_transfers::longest_landing);
  EXPECT_EQ(into.use_count(), 1);
}

TEST(KeptRead, ThatIsGivenUpKeepsItsMemoryUntilUcxHasEnded) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    foreign_pair all({}, long_foreign_size);
    endpoint connection = all.connect();
    const remote_region region(connection, all.descriptor(), {.trusted_peer = true});
    auto into = std::make_shared<std::vector<std::byte>>(long_foreign_size);
    const std::weak_ptr<const std::vector<std::byte>> memory = into;
    all.pair.reader_process.faults().delay(call::get, 60s, 1);
    std::error_code ec;
    start_kept(region, into, {.timeout = 1s}).wait(ec);
    EXPECT_EQ(ec, errc::timed_out);
    EXPECT_EQ(connection.state(), connection_state::active);
    if (closes) connection.close(close_mode::abort);
    into.reset();
    all.pair.network.advance(20s);
    all.pair.reader.progress();
    EXPECT_FALSE(memory.expired()) << "UCX would write into memory that was given back";
    all.pair.network.advance(60s);
    all.pair.reader.progress();
    EXPECT_TRUE(memory.expired());
  }
}

TEST(KeptRead, HasABoundOfWhatUcxHas) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  const remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  all.pair.reader_process.faults().delay(call::get, 60s, 0);
  std::error_code ec;
  for (int i = 0; i < 10; ++i) {
    start_kept(region, std::make_shared<std::vector<std::byte>>(long_foreign_size), {.timeout = 1s})
        .wait(ec);
    EXPECT_EQ(ec, errc::timed_out);
  }
  EXPECT_EQ(all.pair.reader_process.count(call::get), 2U);
  all.pair.reader_process.faults().clear();
  all.pair.network.advance(60s);
  const auto into = std::make_shared<std::vector<std::byte>>(long_foreign_size);
  start_kept(region, into).wait();
  EXPECT_TRUE(holds_pattern(*into));
}

/// Reads `count` bytes one by one, as text is read.
std::vector<std::byte> read_bytes(ucx::istream& in, std::size_t count) {
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<std::byte>(in.get()));
  return all;
}

TEST(StreamOfAPlainPeer, DoesNotUseABufferThatUcxHasStill) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  const remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  ucx::istream in(region, {.buffer_size = 1024, .queue_depth = 1, .timeout = 1s});
  all.pair.reader_process.faults().delay(call::get, 10s, 1);
  EXPECT_EQ(in.get(), std::char_traits<char>::eof());
  EXPECT_EQ(in.error(), errc::timed_out);
  in.clear();
  in.seekg(5000);
  EXPECT_TRUE(holds_pattern(read_bytes(in, 1), 0, 5000));
  all.pair.network.advance(20s);
  all.pair.reader.progress();
  EXPECT_TRUE(holds_pattern(read_bytes(in, 1023), 0, 5001)) << "UCX wrote into the buffer in use";
  EXPECT_EQ(connection.state(), connection_state::active);
}

TEST(StreamOfAPlainPeer, IsDestroyedAtOnceWhileReadsAreUnderWay) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  const remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  std::optional<ucx::istream> in(std::in_place, region, stream_options{.buffer_size = 1024});
  read_bytes(*in, 1024);
  all.pair.reader_process.faults().delay(call::get, 60s, 2);
  const std::uint64_t before = all.pair.reader_process.count(call::get);
  EXPECT_TRUE(holds_pattern(read_bytes(*in, 1), 0, 1024));
  EXPECT_EQ(all.pair.reader_process.count(call::get) - before, 2U) << "one was read ahead";
  const auto now = all.pair.network.now();
  in.reset();
  EXPECT_EQ(all.pair.network.now(), now) << "it waited";
  EXPECT_EQ(connection.state(), connection_state::active);
  all.pair.network.advance(60s);  // a sanitizer sees where the bytes land
  all.pair.reader.progress();
  ucx::istream again(region);
  EXPECT_TRUE(holds_pattern(read_bytes(again, 3000)));
}

/// Returns how many pieces of a long read UCX has at once.
std::uint64_t pieces_at_once(foreign_pair& all, remote_region& region) {
  std::vector<std::byte> into(long_foreign_size);
  const std::uint64_t before = all.pair.reader_process.count(call::get);
  request read = region.start_read_at(0, into);
  const std::uint64_t begun = all.pair.reader_process.count(call::get) - before;
  read.wait();
  EXPECT_TRUE(holds_pattern(into));
  return begun;
}

constexpr std::uint64_t most_at_once =
    detail::staged_transfers::most_bytes / detail::staged_transfers::longest_read;

TEST(StagedWindow, IsShortWhereThePeerIsNear) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  EXPECT_EQ(pieces_at_once(all, region), most_at_once) << "nothing is known";
  EXPECT_EQ(pieces_at_once(all, region), 2U);
  EXPECT_EQ(pieces_at_once(all, region), 2U);
}

TEST(StagedWindow, IsLongWhereThePeerIsFar) {
  simulated_pair_options far;
  far.link.latency = 5ms;
  foreign_pair all(far, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  EXPECT_EQ(pieces_at_once(all, region), most_at_once);
  EXPECT_EQ(pieces_at_once(all, region), most_at_once);
}

TEST(StagedWindow, IsMeasuredAgain) {
  foreign_pair all({}, long_foreign_size);
  const endpoint connection = all.connect();
  remote_region region(connection, all.descriptor(), {.trusted_peer = true});
  pieces_at_once(all, region);
  EXPECT_EQ(pieces_at_once(all, region), 2U);
  all.pair.network.advance(11s);
  // The way has become longer.
  all.pair.reader_process.faults().delay(call::get, 1ms, 0);
  EXPECT_EQ(pieces_at_once(all, region), 1U) << "one tells the time";
  EXPECT_EQ(pieces_at_once(all, region), most_at_once);
}

TEST(StagedWindow, FollowsTheShortestTime) {
  constexpr std::size_t least = 1000;
  constexpr std::size_t most = 1'000'000;
  detail::staged_window window(least, most);
  const detail::clock::time_point start(1h);
  EXPECT_EQ(window.bytes(), most);
  EXPECT_FALSE(window.is_old(start));
  window.measured(10us, start);
  EXPECT_EQ(window.bytes(), 30'000U);
  window.measured(20us, start + 1s);
  EXPECT_EQ(window.bytes(), 30'000U);
  window.measured(5us, start + 2s);
  EXPECT_EQ(window.bytes(), 15'000U);
  window.measured(1ns, start + 3s);
  EXPECT_EQ(window.bytes(), least);
  EXPECT_FALSE(window.is_old(start + 13s));
  EXPECT_TRUE(window.is_old(start + 14s));
  window.measured(1h, start + 14s);
  EXPECT_EQ(window.bytes(), most);
}

}  // namespace
}  // namespace ucx::test
