// UCX has closed the port by which data come, as it does for want of a descriptor.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Returns the sockets of this process that listen.
std::set<int> listening_sockets() {
  std::set<int> found;
  for (int number = 0; number < 1000; ++number) {
    int listens = 0;
    ::socklen_t size = sizeof listens;
    if (::getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 1) {
      found.insert(number);
    }
  }
  return found;
}

/// Returns an empty address for a socket that is none of IP.
socket_address address_of(int socket) {
  ::sockaddr_storage found = {};
  ::socklen_t size = sizeof found;
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<::sockaddr*>(&found), &size), 0);
  std::error_code ignored;
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&found), size, ignored);
}

/// Has UCX close those of the sockets that listened later than `before`, but not at `doors`: its
/// next accept() fails. Returns one of their addresses; an empty one where there is none.
socket_address lose_ports_for_data(const std::set<int>& before,
                                   const std::vector<socket_address>& doors) {
  socket_address lost;
  for (const int each : listening_sockets()) {
    if (before.contains(each)) continue;
    const socket_address at = address_of(each);
    if (at.empty() || std::find(doors.begin(), doors.end(), at) != doors.end()) continue;
    if (::shutdown(each, SHUT_RDWR) == 0) lost = at;
  }
  return lost;
}

/// Has a server lose its port for data; returns what its user is told, and what is wrong with that.
std::string told_of_a_lost_port() {
  const std::set<int> before = listening_sockets();
  std::mutex mutex;
  std::optional<listener_failure> told;
  server_options options;
  options.on_failure = [&](const listener_failure& what) {
    const std::lock_guard guard(mutex);
    told = what;
  };
  const ucx_server serving(options);
  const socket_address lost = lose_ports_for_data(before, {serving.address().socket});
  if (lost.empty()) return "there is no port for data";
  const auto until = std::chrono::steady_clock::now() + 30s;
  const auto has_told = [&] {
    const std::lock_guard guard(mutex);
    return told.has_value();
  };
  while (!has_told() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(10ms);
  const std::lock_guard guard(mutex);
  if (!told) return "nobody was told";
  if (told->reason != errc::too_many_files) return "told " + told->reason.message();
  if (told->port != lost) return "told of " + to_string(told->port);
  return told->error_message.find(to_string(lost)) != std::string::npos ? "told of it"
                                                                        : told->error_message;
}

/// Has two listeners of one worker lose their port for data; returns what the log says of that.
std::string logged_of_a_lost_port() {
  const std::set<int> before = listening_sockets();
  std::mutex mutex;
  std::vector<std::string> lines;
  std::multiset<socket_address> told;
  context_options options = over_network();
  options.log = {.level = log_level::error, .sink = [&](log_level, std::string_view line) {
                   const std::lock_guard guard(mutex);
                   lines.emplace_back(line);
                 }};
  const context parent(options);
  worker driven(parent, {.progress = progress_mode::sleeping_thread});
  const auto tell = [&](const listener_failure& what) {
    const std::lock_guard guard(mutex);
    told.insert(what.port);
  };
  std::deque<listener> doors;
  std::vector<socket_address> known;
  for (int i = 0; i < 2; ++i) {
    listener_options each;
    each.on_failure = tell;
    known.push_back(doors.emplace_back(driven, any_port_of_network(), std::move(each)).address());
  }
  const socket_address lost = lose_ports_for_data(before, known);
  if (lost.empty()) return "there is no port for data";
  const bool both_told = soon([&] {
    const std::lock_guard guard(mutex);
    return told.count(lost) == 2;
  });
  const std::lock_guard guard(mutex);
  if (!both_told) return "not both were told";
  const auto count = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find("UCX has closed " + to_string(lost)) != std::string::npos;
  });
  return "logged " + std::to_string(count) + " times";
}

/// In a process of its own: UCX keeps the handler of the socket, whose number no other may have.
TEST(ServerFailureDeathTest, IsToldWhenAPortForDataIsLost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::fputs(told_of_a_lost_port().c_str(), stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "told of it");
}

TEST(ServerFailureDeathTest, OfTwoListenersIsLoggedOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::fputs(logged_of_a_lost_port().c_str(), stderr);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "logged 1 times");
}

}  // namespace
}  // namespace ucx::test
