// UCX has closed the port by which data come, as it does for want of a descriptor.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "support/transports/ucx_server.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

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
  socket_address lost;
  for (const int each : listening_sockets()) {
    if (before.contains(each)) continue;
    const socket_address at = address_of(each);
    if (at.empty() || at == serving.address().socket) continue;
    lost = at;
    // UCX's next accept() fails, and it closes it.
    if (::shutdown(each, SHUT_RDWR) != 0) return "no socket can be shut";
  }
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

}  // namespace
}  // namespace ucx::test
