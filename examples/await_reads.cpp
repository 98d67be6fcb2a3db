// Awaits several reads that are in flight at once, in a coroutine on the worker's event loop.
#include <array>
#include <coroutine>
#include <exception>
#include <iostream>
#include <numeric>
#include <stop_token>
#include <vector>

#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

// The smallest coroutine type: runs at once, ends by itself. What it throws ends the program.
struct task {
  struct promise_type {
    task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Sums all numbers of the region: each part as it arrives, while the others are on their way.
task sum_region(ucx::remote_region& remote, long& sum, std::stop_source stop) {
  std::array<std::vector<long>, 8> parts;
  std::array<ucx::request, 8> reads;
  const std::size_t size = remote.size() / parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].resize(size / sizeof(long));
    reads[i] = remote.start_read_at(i * size, std::as_writable_bytes(std::span(parts[i])));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    co_await std::move(reads[i]);
    sum = std::accumulate(parts[i].begin(), parts[i].end(), sum);
  }
  stop.request_stop();
}

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int main() {
  std::vector<long> numbers(1'000'000);
  std::iota(numbers.begin(), numbers.end(), 0L);
  const ucx::context owner_context = loopback();
  const ucx::worker owner(owner_context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(owner_context, std::as_bytes(std::span(numbers)));

  const ucx::context context = loopback();
  ucx::worker worker(context);
  const ucx::endpoint peer(worker, owner.address());
  ucx::remote_region remote(peer, region.descriptor());
  long sum = 0;
  std::stop_source stop;
  sum_region(remote, sum, stop);
  worker.run(stop.get_token());
  std::cout << "the sum is " << sum << '\n';
  return sum == 499'999'500'000 ? 0 : 1;
}
