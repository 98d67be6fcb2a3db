// An owner that dies, stops, or is another one than before, while a reader wants something of it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t owned_size = std::size_t{64} << 20U;

worker_options patient_for(std::chrono::milliseconds silence) {
  worker_options options;
  options.heartbeat_interval = patience(silence) / 4;
  options.heartbeat_timeout = patience(silence);
  return options;
}

/// An owner in another process, and this process's connection to it.
class OwnerDeath : public testing::Test {
 protected:
  void connect(const worker_options& options = {}) {
    const socket_address where = owner_.listen();
    descriptor_ = owner_.allocate(owned_size);
    context_.emplace(over_network());
    worker_.emplace(*context_, patient(options));
    connection_.emplace(*worker_, where);
    region_.emplace(*connection_, descriptor_, answered_by_the_owner());
  }

  test_peer owner_{"tcp"};
  remote_descriptor descriptor_;
  std::optional<context> context_;
  std::optional<worker> worker_;
  std::optional<endpoint> connection_;
  std::optional<remote_region> region_;
};

TEST_F(OwnerDeath, EndsReadsInFlightBeforeAnyTimeOut) {
  connect({.operation_timeout = 60s, .heartbeat_timeout = 60s});
  std::vector<std::byte> into(owned_size);
  owner_.process().stop();
  request reading = region_->start_read_at(0, into);
  EXPECT_FALSE(reading.wait_for(50ms));
  const clock::time_point begin = clock::now();
  owner_.process().kill();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
  EXPECT_LT(clock::now() - begin, patience(20s));
  EXPECT_EQ(connection_->status(), errc::connection_reset);
  region_->read_at(0, std::span(into).first(8), {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST_F(OwnerDeath, NamesOperationPeerAndCause) {
  connect();
  const std::string peer = to_string(connection_->peer());
  owner_.process().kill();
  std::vector<std::byte> into(8);
  try {
    region_->read_at(16, into);
    FAIL() << "the owner is dead";
  } catch (const ucx::error& failed) {
    const std::string text = failed.what();
    EXPECT_NE(text.find("read of 8 bytes at offset 16"), std::string::npos) << text;
    EXPECT_NE(text.find(peer), std::string::npos) << text;
    EXPECT_NE(text.find("UCX: "), std::string::npos) << text;
  }
}

TEST_F(OwnerDeath, IsReportedByTheFlushOfWrites) {
  connect();
  const std::vector<std::byte> from(owned_size);
  owner_.process().stop();
  request writing = region_->start_write_at(4096, std::span(from).first(owned_size - 4096));
  EXPECT_FALSE(writing.wait_for(100ms)) << "more than a socket holds was taken";
  owner_.process().kill();
  std::error_code ec;
  writing.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
  region_->flush({}, ec);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
  ASSERT_TRUE(region_->first_unconfirmed());
  EXPECT_GE(*region_->first_unconfirmed(), 4096U);
}

TEST_F(OwnerDeath, ShowsAsBadbitAndNeverAsEndOfFile) {
  connect();
  ucx::istream in(*region_);
  std::vector<char> piece(1U << 20U);
  ASSERT_TRUE(in.read(piece.data(), static_cast<std::streamsize>(piece.size())));
  owner_.process().kill();
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
  }
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::connection_reset) << in.error().message();
}

TEST_F(OwnerDeath, OfAStoppedOwnerIsSilence) {
  connect(patient_for(3s));
  std::vector<std::byte> into(8);
  owner_.process().stop();
  const clock::time_point begin = clock::now();
  try {
    region_->read_at(0, into);
    FAIL() << "the owner is stopped";
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_reset);
    const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(patience(3s));
    const std::string told = "no sign of life for " + std::to_string(silence.count()) + " ms";
    EXPECT_NE(std::string(failed.what()).find(told), std::string::npos) << failed.what();
  }
  EXPECT_LT(clock::now() - begin, patience(20s));
}

TEST_F(OwnerDeath, DoesNotFollowFromADeadlineThatPassed) {
  connect();
  owner_.process().stop();
  std::vector<std::byte> into(1U << 20U);
  std::error_code ec;
  region_->read_at(0, into, {.timeout = 300ms}, ec);
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
  // The memory is given back: whatever the owner still sends must not land in it.
  std::memset(into.data(), 0x5a, into.size());
  owner_.process().resume();
  std::vector<std::byte> other(4096);
  region_->read_at(8192, other);
  EXPECT_TRUE(holds_pattern(other, 1, 8192));
  const clock::time_point until = clock::now() + 200ms;
  while (clock::now() < until) worker_->progress();
  EXPECT_TRUE(all_bytes_are(into, std::byte{0x5a}));
}

TEST_F(OwnerDeath, OfAStoppedOwnerGivesWrittenMemoryBack) {
  connect(patient_for(3s));
  owner_.process().stop();
  std::vector<std::byte> from(owned_size);
  std::error_code ec;
  const clock::time_point begin = clock::now();
  region_->write_at(0, from, {.timeout = 200ms}, ec);
  EXPECT_TRUE(ec == errc::timed_out || ec == errc::connection_reset) << ec.message();
  EXPECT_LT(clock::now() - begin, patience(20s));
  // UCX has let go of it, so that it can go.
  std::vector<std::byte>().swap(from);
  owner_.process().resume();
  EXPECT_TRUE(connection_->status()) << "data was on its way: the connection had to be dropped";
}

TEST_F(OwnerDeath, MakesItsDescriptorStaleForASuccessor) {
  connect();
  const socket_address where = connection_->peer();
  owner_.process().kill();
  test_peer successor("tcp");
  ASSERT_EQ(successor.ask("listen " + to_string(where)), to_string(where));
  successor.allocate(owned_size);
  const endpoint connection(*worker_, where);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  std::vector<std::byte> into(8);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::stale_region) << ec.message();
  if (!goes_over_verbs()) return;
  // A device knows keys, and no owners.
  remote_region by_key(connection, descriptor_);
  by_key.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
}

/// With CMA and, as where the system forbids it or UCX has none, without.
class SharedMemory : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(SharedMemory, SurvivesItsOwnersDeathOrSaysSo) {
  test_peer owner("shared", "caller");  // makes no progress of its own
  const remote_descriptor descriptor = owner.allocate(1U << 20U);
  const worker_address address = parse_worker_address(owner.ask("address"));
  context_options options;
  options.transports = GetParam();
  options.features = feature::rma | feature::wakeup;
  const context parent(options);
  const worker reader(parent);
  const endpoint connection(reader, address);
  remote_region region(connection, descriptor);
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(1U << 20U);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  std::fill(into.begin(), into.end(), std::byte{0x77});
  region.write_at(8, std::span(into).first(8));
  region.flush();
  region.read_at(0, std::span(into).subspan(16, 24));
  EXPECT_TRUE(holds_pattern(std::span(into).subspan(16, 8), 1, 0));
  EXPECT_TRUE(all_bytes_are(std::span(into).subspan(24, 8), std::byte{0x77}));
  EXPECT_TRUE(holds_pattern(std::span(into).subspan(32, 8), 1, 16));
  owner.process().kill();
  std::error_code ec;
  region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_TRUE(ec || all_bytes_are(std::span(into).subspan(8, 8), std::byte{0x77}));
}

INSTANTIATE_TEST_SUITE_P(Transports, SharedMemory,
                         testing::Values(std::vector<std::string>{"posix", "cma", "self"},
                                         std::vector<std::string>{"posix", "self"}));

}  // namespace
}  // namespace ucx::test
