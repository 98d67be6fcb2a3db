// Drives a worker from an Asio io_context: handlers of both run on its thread.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <span>
#include <utility>  // Boost 1.74 uses it without saying so
#include <vector>

#if __has_include(<asio.hpp>)
#include <asio.hpp>
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
#endif

#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

// Makes progress at the worker's events, and at its next deadline.
struct asio_progress {
  asio_progress(asio::io_context& io, ucx::worker& worker)
      : driven(worker), events(io, driven.event_fd()), deadline(io) {
    turn();
  }
  ~asio_progress() { events.release(); }  // the descriptor is the worker's

  void turn() {
    do {
      while (driven.progress()) {
      }
    } while (!driven.arm());
    events.async_wait(events.wait_read, [this](auto failed) { failed ? void() : turn(); });
    deadline.expires_after(
        std::min<std::chrono::nanoseconds>(driven.next_timeout(), std::chrono::hours(1)));
    deadline.async_wait([this](auto replaced) { replaced ? void() : driven.signal(); });
  }

  ucx::worker& driven;
  asio::posix::stream_descriptor events;
  asio::steady_timer deadline;
};

int main() {
  std::vector<long> numbers(100'000, 1);
  // TCP on the loopback interface: nobody outside this machine can connect.
  const ucx::context context({.transports = {"tcp"}, .devices = {"lo"}});
  const ucx::worker owner(context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(context, std::as_bytes(std::span(numbers)));
  ucx::worker worker(context, {.progress = ucx::progress_mode::external});
  ucx::remote_region remote(ucx::endpoint(worker, owner.address()), region.descriptor());
  asio::io_context io;
  asio_progress progress(io, worker);
  std::vector<long> copy(numbers.size());
  ucx::request read = remote.start_read_at(0, std::as_writable_bytes(std::span(copy)));
  read.then([&](std::error_code) { io.stop(); });
  worker.signal();  // the read may have left something to do, or have ended
  io.run();
  std::cout << (copy == numbers ? "read by Asio's thread\n" : "something is wrong\n");
  return copy == numbers ? 0 : 1;
}
