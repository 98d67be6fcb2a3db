// A peer of a connection over shared memory dies, which UCX does not notice there: another
// connection watches it.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "support/pattern.hpp"
#include "support/test_peer.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// What docs/conventions.md says of a process that dies, when the system closes its sockets, and
/// the time that a busy machine may take: far from the 60 s after which the connection itself would
/// tell.
constexpr std::chrono::seconds watched_within{10};

TEST(WatchedPeer, DeathEndsWhatIsOutstandingOverSharedMemory) {
  test_peer owner("local");
  const socket_address where(owner.ask("beside"));
  const worker_address local = parse_worker_address(owner.ask("address"));
  const remote_descriptor exposed = owner.allocate(1 << 20);

  context_options tcp;
  tcp.transports = {"tcp"};
  tcp.devices = {"lo"};
  const context network(tcp);
  const worker watcher(network, {.progress = progress_mode::sleeping_thread});
  const endpoint watching(watcher, where);

  context_options shared;
  shared.transports = {"posix", "cma", "self"};
  const context same_host(shared);
  // Its own time-outs would come too late.
  worker reader(same_host, {.operation_timeout = 60s, .heartbeat_timeout = 60s});
  std::mutex mutex;
  std::optional<connection_end> end;
  endpoint_options options;
  options.failure = peer_failure::undetected;
  options.watched_by = &watching;
  options.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  endpoint fast(reader, local, std::move(options));
  fast.wait_connected();
  remote_region region(fast, exposed, {.way = way::message});
  std::vector<std::byte> into(1 << 20);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  // What nobody takes: announced, so that the peer has the bytes' address; and asked about.
  const std::vector<std::byte> bytes = pattern(1 << 20, 2);
  std::vector<std::byte> answer(1 << 20);
  request receiving = fast.start_receive(1, answer);
  request streaming = fast.start_stream_receive(answer, stream_amount::some);
  request sending = fast.start_send(2, bytes);
  request asking = fast.start_send(3, std::span(bytes).first(100), {.until = send_until::matched});
  EXPECT_FALSE(sending.wait_for(50ms));

  owner.process().stop();
  request reading = region.start_read_at(0, into);
  EXPECT_FALSE(reading.wait_for(50ms));
  const clock::time_point begin = clock::now();
  owner.process().kill();
  for (request* const each : {&reading, &receiving, &streaming, &sending, &asking}) {
    std::error_code ec;
    each->wait(ec);
    EXPECT_EQ(ec, errc::connection_reset) << each->description() << ": " << ec.message();
  }
  EXPECT_LT(clock::now() - begin, watched_within);
  EXPECT_EQ(fast.status(), errc::connection_reset);
  reader.progress();
  const std::lock_guard guard(mutex);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->reason, errc::connection_reset);
}

}  // namespace
}  // namespace ucx::test
