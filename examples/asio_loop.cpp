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

// Waits for the worker's event descriptor and its next deadline, and makes progress at both.
class asio_progress {
 public:
  asio_progress(asio::io_context& io, ucx::worker& driven)
      : driven_(driven), events_(io, driven.event_fd()), deadline_(io) {
    turn();
  }
  ~asio_progress() { events_.release(); }  // the descriptor is the worker's

 private:
  void turn() {
    do {
      while (driven_.progress()) {
      }
    } while (!driven_.arm());
    events_.async_wait(asio::posix::stream_descriptor::wait_read, [this](auto failed) {
      if (!failed) turn();
    });
    deadline_.expires_after(
        std::min<std::chrono::nanoseconds>(driven_.next_deadline(), std::chrono::hours(1)));
    deadline_.async_wait([this](auto replaced) {
      if (!replaced) driven_.signal();  // makes the descriptor readable
    });
  }

  ucx::worker& driven_;
  asio::posix::stream_descriptor events_;
  asio::steady_timer deadline_;
};

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int main() {
  std::vector<long> numbers(100'000, 1);
  const ucx::context owner_context = loopback();
  const ucx::worker owner(owner_context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(owner_context, std::as_bytes(std::span(numbers)));

  const ucx::context context = loopback();
  ucx::worker worker(context, {.progress = ucx::progress_mode::external});
  const ucx::endpoint connection(worker, owner.address());
  ucx::remote_region remote(connection, region.descriptor());
  asio::io_context io;
  asio_progress progress(io, worker);
  std::vector<long> copy(numbers.size());
  ucx::request read = remote.start_read_at(0, std::as_writable_bytes(std::span(copy)));
  // start_ may have left something to do, or the read may have ended: the worker says so.
  worker.signal();
  read.then([&](std::error_code) { io.stop(); });
  io.run();
  std::cout << (copy == numbers ? "read by Asio's thread\n" : "something is wrong\n");
  return copy == numbers ? 0 : 1;
}
