#include "worker/await_rounds.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

#include "worker/worker_core.hpp"

namespace ucx::detail {

bool await_rounds(std::span<worker_core* const> workers) noexcept {
  struct marks {
    std::mutex mutex;
    std::condition_variable reached;
    std::size_t ahead = 0;
  };
  try {
    // Shared: we may have given up when a thread comes to its own.
    const std::shared_ptr<marks> placed = std::make_shared<marks>();
    bool all_are_driven = true;
    std::chrono::nanoseconds longest{};
    for (worker_core* const each : workers) {
      if (!each->driven_elsewhere() || each->in_handler()) {
        all_are_driven = false;
        continue;
      }
      longest = std::max(longest, each->options().close_timeout);
      {
        const std::lock_guard guard(placed->mutex);
        ++placed->ahead;
      }
      each->post([placed] {
        const std::lock_guard guard(placed->mutex);
        --placed->ahead;
        placed->reached.notify_all();
      });
    }
    std::unique_lock guard(placed->mutex);
    return placed->reached.wait_for(guard, longest, [&] { return placed->ahead == 0; }) &&
           all_are_driven;
  } catch (const std::bad_alloc&) {
    // Then whatever that round keeps goes when the thread lets go of it.
    return false;
  }
}

}  // namespace ucx::detail
