// Reads from several peers at once, until a deadline for all of them together.
#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <span>
#include <vector>

#include <stdexec/execution.hpp>

#include <ucx/execution.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>
#include <ucx/worker.hpp>

using namespace std::chrono_literals;

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

// A process that has a number for others.
struct owner {
  explicit owner(int number) : value(number) {}
  int value;
  ucx::context context = loopback();
  ucx::worker worker{context, {.progress = ucx::progress_mode::sleeping_thread}};
  ucx::memory_region region{context, std::as_bytes(std::span(&value, 1))};
};

int main() {
  std::array<owner, 3> owners{owner(1), owner(2), owner(3)};
  const ucx::context context = loopback();
  ucx::worker worker(context);
  std::vector<ucx::remote_region> peers;
  for (owner& each : owners) {
    const ucx::endpoint connection(worker, each.worker.address());
    peers.emplace_back(connection, each.region.descriptor());
  }

  std::array<int, 3> numbers = {};
  const auto read = [&](std::size_t i) {
    return ucx::async_read_at(peers[i], 0,
                              std::as_writable_bytes(std::span(numbers).subspan(i, 1)));
  };
  // The first error stops the others, too. A stop may be requested on any thread.
  stdexec::inplace_stop_source deadline;
  const ucx::scheduled_call timer = worker.call_after(2s, [&] { deadline.request_stop(); });
  const auto all = ucx::sync_wait(
      worker, stdexec::write_env(stdexec::when_all(read(0), read(1), read(2)),
                                 stdexec::prop{stdexec::get_stop_token, deadline.get_token()}));
  if (!all) {
    std::cout << "not all peers have answered\n";
    return 1;
  }
  std::cout << "the sum is " << numbers[0] + numbers[1] + numbers[2] << '\n';
}
