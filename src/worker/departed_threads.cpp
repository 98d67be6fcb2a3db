#include "worker/departed_threads.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/one_per_process.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds longest_exit{10};

/// Never destroyed: a worker that is itself destroyed at exit may come later than the wait. A child
/// of fork() has none of the threads, and waits for its own.
constinit one_per_process<departed_threads> all_departed;

void wait_at_exit() {
  if (departed_threads* const threads = all_departed.find()) threads->wait(longest_exit);
}

constinit std::atomic<bool> waits_at_exit{false};

}  // namespace

departed_threads& departed_threads::instance() {
  // No static object: its guard may be held for ever in a child of fork().
  if (!waits_at_exit.exchange(true)) std::atexit(wait_at_exit);
  return all_departed.get();
}

departed_threads::ticket departed_threads::add(std::list<departure> leaving) noexcept {
  const std::lock_guard guard(mutex_);
  join_ended();
  const ticket added = leaving.begin();
  departing_.splice(departing_.end(), leaving);
  return added;
}

void departed_threads::end(ticket departing) noexcept {
  const std::lock_guard guard(mutex_);
  departing->over = true;
  ended_.notify_all();
}

void departed_threads::wait(std::chrono::nanoseconds limit) noexcept {
  const auto until = std::chrono::steady_clock::now() + limit;
  std::unique_lock guard(mutex_);
  const auto foreign = [](const departure& each) {
    return each.thread.get_id() != std::this_thread::get_id();
  };
  for (;;) {
    join_ended();
    if (std::none_of(departing_.begin(), departing_.end(), foreign)) return;
    if (ended_.wait_until(guard, until) == std::cv_status::timeout) return;
  }
}

/// Those have nothing left to do but to return.
void departed_threads::join_ended() noexcept {
  for (ticket each = departing_.begin(); each != departing_.end();) {
    const ticket next = std::next(each);
    if (each->over) {
      each->thread.join();
      departing_.erase(each);
    }
    each = next;
  }
}

}  // namespace ucx::detail
