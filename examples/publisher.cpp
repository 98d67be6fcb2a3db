// Publishes events to several subscribers out of one pool of buffers. One that is slow holds the
// publisher back, and never fills its memory.
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include <ucx/buffer.hpp>
#include <ucx/endpoint.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

constexpr std::uint64_t events = 500;
// Each subscriber lets the publisher leave 64 KiB that were not looked at yet.
const ucx::worker_options small_window{.progress = ucx::progress_mode::sleeping_thread,
                                       .message_window = 64 << 10};

// Counts the events that come in order; takes its time.
void subscribe(ucx::worker& worker, std::uint64_t& seen) {
  std::vector<std::byte> event(4096);
  for (seen = 0; seen < events; ++seen) {
    if (worker.receive(ucx::tag_match::any(), event).tag != seen) return;
    if (seen % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int main() {
  const ucx::context their_context = loopback();
  std::vector<ucx::worker> subscribers;
  for (int i = 0; i < 3; ++i) subscribers.emplace_back(their_context, small_window);
  std::vector<std::uint64_t> seen(subscribers.size());
  std::vector<std::jthread> threads;
  const ucx::context context = loopback();
  ucx::worker worker(context);
  std::vector<ucx::endpoint> peers;
  for (std::size_t i = 0; i < subscribers.size(); ++i) {
    peers.emplace_back(worker, subscribers[i].address());
    threads.emplace_back([&, i] { subscribe(subscribers[i], seen[i]); });
  }
  ucx::buffer_pool pool({.size = 4096, .count = 32});  // for all subscribers together
  std::uint64_t held_back = 0;
  for (std::uint64_t event = 0; event < events; ++event) {
    for (ucx::endpoint& peer : peers) {
      while (pool.available() == 0) worker.progress();  // buffers come back by themselves
      ucx::buffer bytes = pool.take();
      std::memset(bytes.data(), static_cast<int>(event % 256), bytes.size());
      std::error_code ec = ucx::errc::would_block;
      for (; ec == ucx::errc::would_block; worker.progress()) {
        peer.post_send(event, std::move(bytes), event, {.backpressure = ucx::backpressure::fail},
                       ec);
        if (ec == ucx::errc::would_block) ++held_back;
      }
      if (ec) return 1;
    }
  }
  while (pool.available() < pool.count()) worker.progress();
  threads.clear();  // joins
  std::cout << "all events sent; held back " << held_back << " times\n";
  return seen == std::vector<std::uint64_t>(3, events) ? 0 : 1;
}
