// Many connections at once, to servers in processes of their own.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/process_memory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_options.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t short_echo = 1024;
constexpr std::size_t middle = 300'000;  // long enough to be announced first
constexpr std::size_t long_echo = std::size_t{1} << 20U;
constexpr std::uint64_t flood_tag = 7;

/// Lets this process, and those that it starts, open as many files as the system allows; returns
/// how many.
std::size_t allowed_files() {
  ::rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// The clients: all of one worker, which the test drives.
class crowd {
 public:
  /// Over TCP, or over shared memory.
  explicit crowd(route over = route::tcp_by_listener) : context_(options_for(over)) {}

  /// So many at a time that a busy machine has said hello for each before the server gives it up.
  void connect(const socket_address& where, std::size_t count) {
    constexpr std::size_t at_once = 50;
    for (std::size_t i = 0; i < count; ++i) {
      connections_.emplace_back(
          worker_, where, endpoint_options{.connect_timeout = 60s, .wait = connect_wait::none});
      if (connections_.size() % at_once == 0 || i + 1 == count) {
        for (endpoint& each : connections_) each.wait_connected();
      }
    }
  }
  void connect(const worker_address& where, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      connections_.emplace_back(worker_, where, endpoint_options{.connect_timeout = 60s});
    }
    for (endpoint& each : connections_) each.wait_connected();
  }
  /// Has `bytes` of each of the first `count` connections echoed, `at_once` of them at a time.
  void echo(std::size_t bytes, std::size_t count, std::size_t at_once) {
    for (std::size_t first = 0; first < count; first += at_once) {
      const auto some = std::span(connections_).subspan(first, std::min(at_once, count - first));
      std::vector<std::vector<std::byte>> sent;
      std::vector<std::vector<std::byte>> back(some.size(), std::vector<std::byte>(bytes));
      std::vector<request> exchanges;
      for (std::size_t i = 0; i < some.size(); ++i) {
        sent.push_back(pattern(bytes, first + i));
        exchanges.push_back(some[i].start_receive(first + i, back[i]));
        exchanges.push_back(some[i].start_send(first + i, sent[i]));
      }
      ASSERT_TRUE(wait_all(exchanges, 60s));
      for (const request& each : exchanges) ASSERT_FALSE(each.error()) << each.error().message();
      for (std::size_t i = 0; i < some.size(); ++i) {
        ASSERT_EQ(back[i], sent[i]) << "of connection " << first + i;
      }
    }
  }
  /// Everybody sends messages of so many bytes until nobody has credit, also a while later, or
  /// there are `most` of them. Returns how many; `least` of them if that can be in a minute.
  std::size_t flood(std::size_t bytes, std::size_t least, std::size_t most) {
    const std::vector<std::byte> sent = pattern(bytes);
    const send_options options{.memory = send_memory::copied, .backpressure = backpressure::fail};
    std::size_t count = 0;
    clock::time_point last = clock::now();
    const clock::time_point limit = last + 60s;
    while (count < most && (clock::now() - last < 300ms || (count < least && last < limit))) {
      worker_.progress();
      for (endpoint& each : connections_) {
        std::error_code ec;
        each.post_send(flood_tag, sent, 0, options, ec);
        if (ec) continue;
        ++count;
        last = clock::now();
      }
    }
    return count;
  }
  /// Takes so many messages of a flood that come back.
  void take_back(std::size_t bytes, std::size_t count) {
    const clock::time_point limit = clock::now() + 120s;
    std::vector<std::byte> into(bytes);
    while (count > 0 && clock::now() < limit) {
      std::optional<message> next = worker_.take(flood_tag);
      if (!next) {
        worker_.progress();
        continue;
      }
      ASSERT_EQ(next->length(), bytes);
      next->receive(into);
      ASSERT_TRUE(holds_pattern(into));
      --count;
    }
    EXPECT_EQ(count, 0U) << "have not come back";
  }
  void leave() {
    std::vector<request> closing;
    for (endpoint& each : connections_) closing.push_back(each.start_close());
    ASSERT_TRUE(wait_all(closing, 60s));
    for (const request& each : closing) EXPECT_FALSE(each.error()) << each.error().message();
    EXPECT_EQ(worker_.connections(), 0U);
    connections_.clear();
  }

 private:
  static context_options options_for(route over) {
    context_options options = context_options_for(over);
    options.features = feature::am | feature::wakeup;
    return options;
  }

  context context_;
  worker worker_{context_};
  std::vector<endpoint> connections_;
};

/// Expects that the server learns that everybody left.
void expect_nobody(test_peer& server) {
  const clock::time_point limit = clock::now() + 20s;
  std::string left = server.ask("connections");
  while (left != "0" && clock::now() < limit) {
    std::this_thread::sleep_for(2ms);
    left = server.ask("connections");
  }
  EXPECT_EQ(left, "0");
}

class Scale : public testing::TestWithParam<std::size_t> {};

TEST_P(Scale, ServersEchoToEveryClientUntilItLeaves) {
  if (allowed_files() < 2048) GTEST_SKIP() << "400 connections want more open files";
  std::deque<test_peer> servers;
  for (std::size_t i = 0; i < GetParam(); ++i) servers.emplace_back("tcp");
  std::vector<socket_address> doors;
  for (test_peer& each : servers) {
    doors.push_back(each.listen());
    each.ask("echo");
  }
  for (const std::size_t clients : {10U, 50U, 100U}) {
    SCOPED_TRACE(clients);
    crowd all;
    for (const socket_address& door : doors) all.connect(door, clients);
    for (test_peer& each : servers) EXPECT_EQ(each.ask("connections"), std::to_string(clients));
    const std::size_t connections = clients * GetParam();
    all.echo(short_echo, connections, connections);
    all.echo(middle, connections, connections);
    all.leave();
    for (test_peer& each : servers) expect_nobody(each);
  }
}

/// What UCX's shared memory takes of /dev/shm for each worker, twice over.
constexpr std::uintmax_t shared_memory_of_a_worker = std::uintmax_t{10} << 20U;

TEST_P(Scale, ServersOfThisHostEchoToEveryClientUntilItLeaves) {
  const std::uintmax_t needed = (GetParam() + 1) * shared_memory_of_a_worker;
  const std::uintmax_t room = std::filesystem::space("/dev/shm").available;
  if (room < needed) {
    GTEST_SKIP() << "/dev/shm has room for " << room << " bytes, and " << needed << " are wanted";
  }
  std::deque<test_peer> servers;
  for (std::size_t i = 0; i < GetParam(); ++i) servers.emplace_back("local");
  std::vector<worker_address> doors;
  for (test_peer& each : servers) {
    doors.push_back(parse_worker_address(each.ask("address")));
    each.ask("echo");
  }
  for (const std::size_t clients : {10U, 50U, 100U}) {
    SCOPED_TRACE(clients);
    crowd all(route::shared_memory);
    for (const worker_address& door : doors) all.connect(door, clients);
    for (test_peer& each : servers) EXPECT_EQ(each.ask("connections"), std::to_string(clients));
    const std::size_t connections = clients * GetParam();
    all.echo(short_echo, connections, connections);
    all.echo(middle, connections, 50);  // what more there was would wait for its turn anyway
    all.leave();
    for (test_peer& each : servers) expect_nobody(each);
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, Scale, testing::Values(1U, 2U, 4U),
                         testing::PrintToStringParamName());

/// Several times what docs/how-to/tuning.md has measured: other systems and versions may need more,
/// and malloc keeps some of what the long messages were received into.
constexpr std::uint64_t memory_of_a_connection = std::uint64_t{64} << 10U;

TEST(ManyConnections, ThousandOfOneServerTakeBoundedMemory) {
  if (allowed_files() < 4096) GTEST_SKIP() << "1000 connections want more open files";
  constexpr std::size_t count = 1000;
  test_peer server("tcp");
  const socket_address door = server.listen();
  server.ask("echo");
  const std::uint64_t before = std::stoull(server.ask("resident"));
  const auto expect_bounds = [&](const char* when) {
    const std::uint64_t now = std::stoull(server.ask("resident"));
    const std::uint64_t each = now > before ? (now - before) / count : 0;
    EXPECT_LT(each, memory_of_a_connection) << when;
    testing::Test::RecordProperty(when, std::to_string(each));
  };
  crowd all;
  all.connect(door, count);
  EXPECT_EQ(server.ask("connections"), std::to_string(count));
  expect_bounds("connected");
  all.echo(short_echo, count, count);
  expect_bounds("echoed_short_ones");
  all.echo(long_echo, count, 16);  // at a time: two gibibytes at once are not what is asked
  expect_bounds("echoed_long_ones");
  all.leave();
  expect_nobody(server);
  expect_bounds("left");
}

class UntakenMessagesOfThousand : public testing::TestWithParam<std::size_t> {};

/// With little credit some messages of 9000 bytes are announced, and those of 2000 wait. A quarter
/// more than may be kept is sent, if nothing stops it: without a bound, more than the number stays.
TEST_P(UntakenMessagesOfThousand, KeepWithinTheNumber) {
  if (allowed_files() < 4096) GTEST_SKIP() << "1000 connections want more open files";
  const std::size_t size = GetParam();
  const std::uint64_t number = worker_options().untaken_messages;
  test_peer server("tcp");
  crowd all;
  all.connect(server.listen(), 1000);
  const std::uint64_t before = std::stoull(server.ask("resident"));
  const std::size_t most = number * 5 / 4 / size;
  const std::size_t sent = all.flood(size, number / 4 / size, most);
  const std::uint64_t now = std::stoull(server.ask("resident"));
  const std::uint64_t grown = now > before ? now - before : 0;
  EXPECT_GE(sent * size, number / 4);
  if (size == 2000) {
    EXPECT_LT(sent, most) << "nobody waited for credit";
  }
  if (memory_is_measurable) {
    EXPECT_LE(grown, number) << sent << " messages";
  }
  RecordProperty("resident", std::to_string(grown));
  RecordProperty("sent", std::to_string(sent * size));
  server.ask("echo");
  all.take_back(size, sent);
  all.leave();
  expect_nobody(server);
}

INSTANTIATE_TEST_SUITE_P(OfBytes, UntakenMessagesOfThousand, testing::Values(2000U, 9000U),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace ucx::test
