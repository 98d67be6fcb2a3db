// UCX has closed the port by which data come, as it does for want of a descriptor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

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

TEST(ServerFailure, IsToldWhenAPortForDataIsLost) {
  const std::set<int> before = listening_sockets();
  std::mutex mutex;
  std::optional<listener_failure> told;
  server_options options;
  options.on_failure = [&](const listener_failure& what) {
    const std::lock_guard guard(mutex);
    told = what;
  };
  const server serving(options);
  socket_address lost;
  for (const int each : listening_sockets()) {
    if (before.contains(each)) continue;
    const socket_address at = address_of(each);
    if (at.empty() || at == serving.address().socket) continue;
    lost = at;
    ASSERT_EQ(::shutdown(each, SHUT_RDWR), 0);  // UCX's next accept() fails, and it closes it
  }
  ASSERT_FALSE(lost.empty());
  const auto until = std::chrono::steady_clock::now() + 30s;
  const auto has_told = [&] {
    const std::lock_guard guard(mutex);
    return told.has_value();
  };
  while (!has_told() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(10ms);
  const std::lock_guard guard(mutex);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, errc::too_many_files);
  EXPECT_EQ(told->port, lost);
  EXPECT_THAT(told->words, testing::HasSubstr(to_string(lost)));
}

}  // namespace
}  // namespace ucx::test
