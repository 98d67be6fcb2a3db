// Who lives, and how soon the others know: in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <vector>

#include "support/simulated/frame_peer.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;

/// Options under which nothing but the heart ends an operation.
simulated_pair_options patient() {
  simulated_pair_options options;
  options.reader_worker.operation_timeout = 1h;
  options.reader_worker.close_timeout = 1h;
  return options;
}

std::uint64_t messages_of(const fake_process& process) { return process.count(call::am_send); }

TEST(Liveness, IdleConnectionSendsNothing) {
  served_region served(1000, patient());
  std::vector<std::byte> into(100);
  served.region.read_at(0, into);
  served.region.write_at(0, into);
  served.region.flush();
  served.network().advance(10ms);
  const std::uint64_t sent = served.network().count(call::am_send);
  served.network().advance(3min);
  EXPECT_EQ(served.network().count(call::am_send), sent);
  served.region.read_at(0, into);
}

TEST(Liveness, SilentPeerIsDeadAfterTheTimeout) {
  for (const auto& [interval, timeout] :
       {std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds>{1s, 5s},
        {100ms, 300ms},
        {10ms, 1s},
        {2s, 1s}}) {
    simulated_pair_options options = patient();
    options.reader_worker.heartbeat_interval = interval;
    options.reader_worker.heartbeat_timeout = timeout;
    served_region served(1000, options);
    std::vector<std::byte> into(100);
    served.region.read_at(0, into);
    served.network().advance(1min);
    served.pair.owner_process.stop();
    const auto begin = served.network().now();
    request read = served.region.start_read_at(0, into);
    request write = served.region.start_write_at(0, into);
    request flush = served.region.start_flush();
    std::error_code ec;
    read.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
    const auto took = served.network().now() - begin;
    EXPECT_GE(took, timeout - std::min(interval, timeout) / 4);
    EXPECT_LE(took, timeout + 3ms);
    write.wait(ec);
    ASSERT_TRUE(flush.done());
    EXPECT_EQ(flush.error(), errc::connection_reset);
    EXPECT_EQ(served.connection.status(), errc::connection_reset);
    served.pair.owner_process.resume();
  }
}

TEST(Liveness, ErrorTextSaysHowLongThePeerWasSilent) {
  served_region served(1000, patient());
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> into(100);
  try {
    served.region.read_at(0, into);
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_NE(std::string(failed.what()).find("no sign of life for 5000 ms"), std::string::npos)
        << failed.what();
  }
  served.pair.owner_process.resume();
}

TEST(Liveness, AsksOnceAnIntervalWhileSomethingWaits) {
  served_region served(1000, patient());
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  const std::uint64_t sent = messages_of(served.pair.reader_process);
  read.wait_for(4700ms);
  const std::uint64_t pings = messages_of(served.pair.reader_process) - sent;
  EXPECT_GE(pings, 3U);
  EXPECT_LE(pings, 4U);
  served.pair.owner_process.resume();
  read.wait();
}

TEST(Liveness, OwnerThatWorksSlowlyButAnswersPingsIsAlive) {
  served_region served(1000, patient());
  frame_peer peer(served.network(), "peer");
  peer.welcome_everybody();
  endpoint connection(served.pair.reader, peer.its_address());
  remote_region region(connection, served.exposed.descriptor());
  peer.on_frame = [&](const frame_peer::heard_frame& heard) {
    if (heard.said.code != opcode::ping) return;
    frame alive;
    alive.code = opcode::pong;
    alive.session = heard.said.session;
    peer.say(peer.guest, alive);
  };
  std::vector<std::byte> into(10);
  request read = region.start_read_at(0, into);
  EXPECT_FALSE(read.wait_for(1min));
  EXPECT_FALSE(connection.status());
  frame_peer::heard_frame question;
  ASSERT_TRUE(peer.await(opcode::read, question));
  frame answer;
  answer.code = opcode::data;
  answer.session = question.said.session;
  answer.request = question.said.request;
  answer.length = 10;
  peer.say(peer.guest, answer, pattern(10, 5));
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 5));
  EXPECT_GE(peer.count(opcode::ping), 58U);
  EXPECT_LE(peer.count(opcode::ping), 61U);
}

TEST(Liveness, KilledPeerResetsEverythingOutstandingAtOnce) {
  served_region served(std::size_t{32} << 20U, patient());
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  std::vector<std::vector<std::byte>> into(300, std::vector<std::byte>(1000));
  std::vector<std::byte> from(std::size_t{16} << 20U);
  std::vector<request> all;
  for (auto& each : into) all.push_back(served.region.start_read_at(0, each));
  all.push_back(served.region.start_write_at(0, from));
  remote_region other = served.region.share();
  all.push_back(other.start_write_at(0, from));
  all.push_back(served.region.start_flush());
  all.push_back(other.start_flush());
  all.push_back(served.connection.start_flush());
  int handled = 0;
  for (request& each : all) each.then([&](std::error_code) { ++handled; });
  const auto begin = served.network().now();
  served.pair.owner_process.kill();
  for (request& each : all) {
    std::error_code ec;
    each.wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
  EXPECT_LT(served.network().now() - begin, 20ms);
  served.network().advance(1ms);
  EXPECT_EQ(handled, static_cast<int>(all.size()));
  EXPECT_EQ(served.connection.status(), errc::connection_reset);
  EXPECT_EQ(served.region.start_read_at(0, into[0]).error(), errc::connection_reset);
}

TEST(Liveness, EveryNameOfADeathIsAReset) {
  for (const ucs_status_t name :
       {UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET, UCS_ERR_CANCELED, UCS_ERR_TIMED_OUT,
        UCS_ERR_IO_ERROR, UCS_ERR_NOT_CONNECTED}) {
    for (const bool handler_first : {false, true}) {
      simulated_pair_options options = patient();
      options.link.death_status = name;
      options.link.error_handler_first = handler_first;
      served_region served(1000, options);
      served.connection.wait_connected();
      std::vector<std::byte> into(10);
      request read = served.region.start_read_at(0, into);
      served.pair.owner_process.stop();
      served.pair.owner_process.kill();
      std::error_code ec;
      read.wait(ec);
      EXPECT_EQ(ec, errc::connection_reset) << ucs_status_string(name);
    }
  }
}

TEST(Liveness, ReaderThatComputedForAMinuteFindsItsAnswer) {
  served_region served(1000);  // with the default deadline of 30 s
  served.connection.wait_connected();
  std::vector<std::byte> into(100);
  request read = served.region.start_read_at(0, into);
  served.pair.reader_process.stop();
  served.network().advance(1min);
  served.pair.reader_process.resume();
  read.wait();
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_FALSE(served.connection.status());
}

TEST(Liveness, BusyReaderIgnoresItsOwnAbsence) {
  served_region served(std::size_t{8} << 20U, patient());
  served.connection.wait_connected();
  std::vector<std::byte> into(std::size_t{8} << 20U);
  request read = served.region.start_read_at(0, into);
  for (int round = 0; round < 200 && !read.done(); ++round) {
    served.pair.reader_process.stop();
    served.network().advance(1min);
    served.pair.reader_process.resume();
    served.pair.reader.progress();
  }
  ASSERT_TRUE(read.done());
  read.wait();
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Liveness, OwnerBusyForLessThanTheTimeoutIsAlive) {
  served_region served(1000, patient());
  served.connection.wait_connected();
  std::vector<std::byte> into(100);
  for (int round = 0; round < 5; ++round) {
    request read = served.region.start_read_at(0, into);
    served.pair.owner_process.stop();
    EXPECT_FALSE(read.wait_for(4800ms));
    served.pair.owner_process.resume();
    read.wait();
  }
  EXPECT_FALSE(served.connection.status());
}

TEST(Liveness, ContinuedOwnerWritesNoReturnedMemory) {
  served_region served(1000, patient());
  served.connection.wait_connected();
  std::vector<std::byte> into(100, std::byte{0xa5});
  request read = served.region.start_read_at(0, into);
  served.pair.owner_process.stop();
  std::error_code ec;
  read.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  served.pair.owner_process.resume();
  served.network().advance(10s);
  EXPECT_TRUE(all_bytes_are(into, std::byte{0xa5}));
  endpoint again = served.pair.connect();
  remote_region region(again, served.exposed.descriptor());
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(Liveness, OwnerNoticesAReaderThatDied) {
  served_region served(1000, patient());
  served.connection.wait_connected();
  EXPECT_EQ(served.network().live().endpoints, 2U);
  served.pair.reader_process.kill();
  served.network().advance(1s);
  EXPECT_EQ(served.pair.owner_process.count(call::ep_close), 1U);
}

TEST(Liveness, OwnerOutlivesManyKilledReaders) {
  simulated_pair pair(patient());
  std::vector<std::byte> memory = pattern(std::size_t{8} << 20U);
  memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read_write);
  for (int round = 0; round < 50; ++round) {
    fake_process& process = pair.network.add_process("reader " + std::to_string(round));
    std::error_code ec;
    context made = detail::core_access::make_context(process.api(), {}, ec);
    ASSERT_FALSE(ec);
    worker driver(made);
    process.on_pump([&] { driver.progress(); });
    std::vector<std::byte> bytes(memory.size());
    {
      endpoint connection(driver, pair.owner.address());
      connection.wait_connected();
      remote_region region(connection, exposed.descriptor());
      request read = region.start_read_at(0, bytes);
      request write = region.start_write_at(0, std::span(memory).first(std::size_t{6} << 20U));
      driver.progress();
      if (round % 3 == 0) pair.owner_process.stop();
      process.kill();
      process.on_pump({});
      pair.network.advance(20ms);
      pair.owner_process.resume();
    }
    pair.network.advance(1s);
  }
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  std::vector<std::byte> into(memory.size());
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

}  // namespace
}  // namespace ucx::test
