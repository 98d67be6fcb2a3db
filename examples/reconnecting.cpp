// Keeps a connection to a peer that comes and goes, and says what happens.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <thread>

#include <ucx/connection_manager.hpp>
#include <ucx/context.hpp>
#include <ucx/listener.hpp>
#include <ucx/worker.hpp>

using namespace std::chrono_literals;

int main() {
  const ucx::context context({.transports = {"tcp"}, .devices = {"lo"}});
  const ucx::worker there(context, {.progress = ucx::progress_mode::sleeping_thread});
  std::optional<ucx::listener> door(std::in_place, there, ucx::socket_address("127.0.0.1:0"));
  const ucx::socket_address where = door->address();

  const ucx::worker here(context, {.progress = ucx::progress_mode::sleeping_thread});
  ucx::connection_manager_options options;
  options.reconnect.first_delay = 20ms;
  options.reconnect.max_delay = 1s;
  options.reconnect.max_attempts = 100;
  options.on_change = [](const ucx::managed_peer& peer) {
    std::cout << peer.name << " is " << peer.state;
    if (peer.failure) std::cout << " (" << peer.failure.message() << ')';
    std::cout << '\n';
  };
  options.on_attempt = [](const ucx::managed_peer& peer) {
    return peer.failure != ucx::errc::permission_denied;  // that will not get better
  };
  ucx::connection_manager peers(here, options);
  peers.add("storage", {"localhost", where.port()});

  const std::uint64_t first = peers.wait_active("storage").id();
  door->close(ucx::close_mode::flush);  // the peer restarts
  door.reset();
  for (std::error_code ec = ucx::make_error_code(ucx::errc::busy); ec;) {
    std::this_thread::sleep_for(50ms);
    door.emplace(there, where, ucx::listener_options(), ec);
    if (ec) door.reset();
  }
  while (peers.wait_active("storage").id() == first) std::this_thread::sleep_for(1ms);
  peers.close();
  return 0;
}
