// Drives a worker from an Asio io_context: handlers of both run on its thread.
#include <iostream>
#include <span>
#include <vector>

#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

#include "asio_progress.hpp"

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
