// A server's worker and a client's, over TCP, for the conformance tests of connections.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {

inline const socket_address any_port = any_port_of_network();

inline std::vector<std::byte> bytes(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

inline context_options loopback_tcp() { return context_options_for(route::tcp_by_listener); }

/// The server's worker has a thread; the client's mode is the parameter.
class ConformanceB : public testing::TestWithParam<progress_mode> {
 protected:
  /// Drives the client until `done()` holds; returns whether it did in time.
  bool until(const std::function<bool()>& done,
             std::chrono::nanoseconds limit = std::chrono::seconds(40)) {
    const auto end = std::chrono::steady_clock::now() + patience(limit);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      if (!client_.progress()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
  }

  /// Closes the door from another thread, while the client answers what its peers wait for.
  void close(listener& door, close_mode connections) {
    std::atomic<bool> over{false};
    const std::jthread closing([&] {
      door.close(connections);
      over = true;
    });
    EXPECT_TRUE(until([&] { return over.load(); }));
  }

  context server_context_{loopback_tcp()};
  context client_context_{loopback_tcp()};
  worker server_{server_context_, patient({.progress = progress_mode::sleeping_thread,
                                           .name = "server",
                                           .terms = {.info = bytes("of the server")}})};
  worker client_{client_context_, patient({.progress = GetParam(),
                                           .close_timeout = std::chrono::seconds(3),
                                           .name = "client",
                                           .terms = {.info = bytes("of the client")}})};
};

}  // namespace ucx::test
