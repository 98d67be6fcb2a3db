// Many peers at one listener: they come, and go, and leave nothing behind.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/process/process_memory.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t clients = 100;

/// Returns what each open descriptor is of, in order, but for those that were closed meanwhile.
std::vector<std::string> names_of_open_files() {
  std::vector<std::string> all;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string of = std::filesystem::read_symlink(each, gone).string();
    if (!gone) all.push_back(each.path().filename().string() + ' ' + of);
  }
  return all;
}

TEST(ManyClients, ComeAndGoWithinBounds) {
  const context server_context(context_options_for(route::tcp_by_listener));
  const context client_context(context_options_for(route::tcp_by_listener));
  // They all come, and go, at once.
  const worker server(server_context,
                      {.progress = progress_mode::sleeping_thread, .connect_timeout = 60s});
  worker client(client_context, {.connect_timeout = 60s, .close_timeout = 60s});
  const listener door(server, any_port_of_network());
  const auto round = [&] {
    std::vector<endpoint> connections;
    for (std::size_t i = 0; i < clients; ++i) {
      connections.emplace_back(client, door.address(),
                               endpoint_options{.wait = connect_wait::none});
    }
    for (endpoint& each : connections) each.wait_connected();
    EXPECT_EQ(client.connections(), clients);
    std::vector<request> closing;
    for (endpoint& each : connections) closing.push_back(each.start_close());
    for (request& each : closing) each.wait();
    const auto until = std::chrono::steady_clock::now() + 60s;
    while ((server.connections() != 0 || door.connections() != 0) &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(server.connections(), 0U);
    EXPECT_EQ(door.connections(), 0U);
  };
  round();  // UCX's pools have grown to what so many connections at once need
  const std::vector<std::string> files = names_of_open_files();
  const std::size_t memory = resident_memory();
  round();
  round();
  // UCX opens some for a moment (1.22: of the network's interfaces and routes), also while it ends
  // a connection that the server counts no more: what is left is what stays.
  std::vector<std::string> left = names_of_open_files();
  for (int i = 0; i < 10'000 && left.size() > files.size(); ++i) {
    client.progress();
    std::this_thread::sleep_for(1ms);
    left = names_of_open_files();
  }
  EXPECT_LE(left.size(), files.size()) << testing::PrintToString(files) << "\n"
                                       << testing::PrintToString(left);
  if (memory_is_measurable) {
    EXPECT_LT(resident_memory(), memory + (std::size_t{64} << 20U));
  }
}

}  // namespace
}  // namespace ucx::test
