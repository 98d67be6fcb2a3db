// A peer of a connection over shared memory dies, which UCX does not notice there: its process is
// watched, or another connection watches it.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Within which a death has to be told. docs/reference/connections.md says 2 s; a machine that is
/// slow, with a sanitizer too, takes longer now and then.
constexpr std::chrono::seconds watched_within{10};
/// After which workers tell by themselves: too late for any of the tests here.
constexpr std::chrono::seconds silent_for{60};

TEST(WatchedPeer, DeathEndsWhatIsOutstandingOverSharedMemory) {
  test_peer owner("local");
  const socket_address where(owner.ask("beside"));
  const worker_address local = parse_worker_address(owner.ask("address"));
  const remote_descriptor exposed = owner.allocate(1 << 20);

  const context network(over_network());
  const worker watcher(
      network, {.progress = progress_mode::sleeping_thread, .heartbeat_timeout = silent_for});
  const endpoint watching(watcher, where);

  context_options shared;
  shared.transports = {"posix", "cma", "self"};
  const context same_host(shared);
  worker reader(same_host, {.operation_timeout = silent_for, .heartbeat_timeout = silent_for});
  std::mutex mutex;
  std::optional<connection_end> end;
  endpoint_options options;
  options.error_handling = error_handling_mode::none;
  options.watched_by = &watching;
  options.events.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  endpoint fast(reader, local, std::move(options));
  fast.wait_connected();
  remote_region region(fast, exposed, {.transfer_method = transfer_method::message});
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

/// This process serves at its worker's address, over shared memory, and waits for nothing.
class IdleServer : public testing::TestWithParam<progress_mode> {
 protected:
  static context_options of_one_host() {
    context_options options;
    options.transports = {"posix", "cma", "self"};
    return options;
  }
  IdleServer() {
    connection_events told;
    told.on_established = [this](const endpoint&, const connection_report& report) {
      const std::lock_guard guard(mutex_);
      watched_ = report.watched;
    };
    told.on_closed = [this](const connection_end& end) {
      const std::lock_guard guard(mutex_);
      ends_.push_back(end);
    };
    worker_.set_connection_events(std::move(told));
  }
  static worker_options idle() {
    worker_options options;
    options.progress = GetParam();
    options.heartbeat_timeout = silent_for;
    return options;
  }
  static bool system_tells_of_ends() {
#ifdef SYS_pidfd_open
    const auto self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    return self >= 0 && ::close(self) == 0;
#else
    return false;
#endif
  }
  bool watched() {
    const std::lock_guard guard(mutex_);
    return watched_;
  }
  std::size_t ends() {
    const std::lock_guard guard(mutex_);
    return ends_.size();
  }
  bool until(const std::function<bool()>& done, std::chrono::seconds limit) {
    const auto end = clock::now() + limit;
    while (!done()) {
      if (clock::now() >= end) return false;
      if (!worker_.progress()) std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  /// Connects so many processes to this one's address.
  void connect_to_here(std::span<test_peer> clients) {
    const std::string here = to_string(worker_.address());
    for (test_peer& each : clients) {
      each.say("connect " + here);
      auto hearing = std::async(std::launch::async, [&] { return each.hear(); });
      EXPECT_TRUE(until([&] { return hearing.wait_for(0s) == std::future_status::ready; }, 30s));
      EXPECT_TRUE(hearing.get().starts_with("ok"));
    }
    EXPECT_TRUE(until([&] { return worker_.connections() == clients.size(); }, 30s));
  }

  std::mutex mutex_;
  bool watched_ = false;
  std::vector<connection_end> ends_;
  context context_{of_one_host()};
  worker worker_{context_, idle()};
};

TEST_P(IdleServer, NoticesTheDeathOfAClient) {
  std::array clients{test_peer("local"), test_peer("local")};
  connect_to_here(clients);
  if (!system_tells_of_ends()) GTEST_SKIP() << "the system has no descriptors of processes";
  EXPECT_TRUE(watched());
  EXPECT_FALSE(until([&] { return ends() > 0; }, 1s)) << "nobody has ended";
  clients[0].process().kill();
  EXPECT_TRUE(until([&] { return worker_.connections() == 1 && ends() == 1; }, watched_within));
  EXPECT_EQ(ends_.at(0).reason, errc::connection_reset);
  clients[1].process().stop();
  EXPECT_FALSE(until([&] { return ends() > 1; }, 1s)) << "it may go on";
  clients[1].process().kill();
  EXPECT_TRUE(until([&] { return worker_.connections() == 0 && ends() == 2; }, watched_within));
}

TEST_P(IdleServer, TellsAGoodbyeFromADeath) {
  std::array clients{test_peer("local")};
  connect_to_here(clients);
  clients[0].say("disconnect");
  EXPECT_TRUE(until([&] { return ends() == 1; }, 30s));
  EXPECT_EQ(ends_.at(0).reason, errc::closed_by_peer);
}

INSTANTIATE_TEST_SUITE_P(Modes, IdleServer,
                         testing::Values(progress_mode::caller, progress_mode::sleeping_thread,
                                         progress_mode::polling_thread));

}  // namespace
}  // namespace ucx::test
