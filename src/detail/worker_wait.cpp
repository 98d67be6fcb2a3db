// How threads wait for a worker: spinning, yielding and sleeping. Apart from worker_core.cpp, which
// never waits.
#include <algorithm>
#include <thread>

#include "detail/endpoint_core.hpp"
#include "detail/progress_thread.hpp"
#include "detail/region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {
namespace {

/// How long a wait spins, in rounds that found nothing, before it yields, and then before it
/// sleeps: some tens of microseconds, and some milliseconds.
constexpr unsigned spins_before_yield = 200;
constexpr unsigned yields_before_sleep = 4000;

/// A thread that waits for another one's progress is woken by it; this only bounds a lost wake-up.
constexpr std::chrono::milliseconds longest_nap{100};

}  // namespace

bool worker_core::driven_elsewhere() const noexcept {
  return thread_ != nullptr && !thread_->is_current();
}

bool worker_core::wait(const operation& waited, clock::time_point until) {
  unsigned idle = 0;
  while (!waited.done()) {
    if (until != clock::time_point::max() && api().now() >= until) return waited.done();
    if (driven_elsewhere()) {
      nap(until, [&] { return waited.done(); });
    } else {
      progress_or_rest(idle, until);
    }
  }
  return true;
}

void worker_core::progress_or_rest(unsigned& idle, clock::time_point until) {
  if (driven_elsewhere()) return nap(until, [] { return false; });
  lock_.let_others_in();
  if (round()) {
    idle = 0;
    return;
  }
  ++idle;
  if (idle < spins_before_yield) return;
  if (idle < spins_before_yield + yields_before_sleep || event_fd_ < 0) return api().relax();
  sleep_on_events(until);
}

template <class Condition>
void worker_core::nap(clock::time_point until, Condition condition) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  {
    std::unique_lock guard(wait_mutex_);
    if (!condition()) {
      wait_condition_.wait_until(guard, std::min(until, clock::now() + longest_nap));
    }
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

void worker_core::wake_waiters() noexcept {
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard guard(wait_mutex_);
  wait_condition_.notify_all();
}

bool worker_core::arm() {
  const std::lock_guard guard(lock_);
  if (event_fd_ < 0 || !ended_.empty() || !deferred_.empty() || has_posted_.load()) return false;
  return api().worker_arm(handle_) == UCS_OK;
}

void worker_core::sleep_on_events(clock::time_point until) {
  if (event_fd_ < 0) return api().relax();
  if (!arm()) return;
  const std::chrono::nanoseconds limit = until_next_deadline();
  const clock::time_point now = api().now();
  if (until <= now) return;
  api().wait_readable(event_fd_, -1, std::min<std::chrono::nanoseconds>(limit, until - now));
}

std::chrono::nanoseconds worker_core::until_next_deadline() {
  const std::lock_guard guard(lock_);
  if (next_tick_ == clock::time_point::max()) return std::chrono::nanoseconds::max();
  const clock::time_point now = api().now();
  return next_tick_ <= now ? std::chrono::nanoseconds::zero() : next_tick_ - now;
}

void worker_core::signal() noexcept {
  if (event_fd_ >= 0) api().worker_signal(handle_);
}

void worker_core::drain(region_core& region) noexcept {
  const clock::time_point until = api().now() + options_.heartbeat_timeout;
  const auto idle = [&] { return !service_.answering(region); };
  if (!in_handler() && wait_until(until, idle)) return;
  const std::lock_guard guard(lock_);
  service_.cut_off(region);
  // What is cut off ends in UCX's callbacks; those of dropped endpoints come by themselves.
  const clock::time_point last = api().now() + std::chrono::seconds(1);
  while (!idle() && api().now() < last) {
    if (progress_ucx() == 0) api().relax();
  }
}

}  // namespace ucx::detail
