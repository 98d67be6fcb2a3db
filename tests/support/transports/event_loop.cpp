#include "support/transports/event_loop.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace ucx::test {

event_loop::event_loop(worker& driven)
    : driven_(driven), thread_([this](const std::stop_token& stop) { run(stop); }) {}

event_loop::~event_loop() {
  thread_.request_stop();
  driven_.signal();
}

void event_loop::run(const std::stop_token& stop) {
  using std::chrono::milliseconds;
  // Only `signal()` ends an idle sleep: a wake-up that is lost shows as a test that takes this
  // long.
  constexpr milliseconds longest{20'000};
  while (!stop.stop_requested()) {
    while (driven_.progress()) {
    }
    if (!driven_.arm()) continue;
    if (stop.stop_requested()) return;
    const auto limit = std::min<std::chrono::nanoseconds>(driven_.next_timeout(), longest);
    ::pollfd readable = {driven_.event_fd(), POLLIN, 0};
    // Rounded up, or the last part of a millisecond would be spun away.
    ::poll(&readable, 1, static_cast<int>(std::chrono::ceil<milliseconds>(limit).count()));
    sleeps_.fetch_add(1);
  }
}

}  // namespace ucx::test
