// Of worker_core (worker/worker_core.hpp): how threads wait for it, by spinning, yielding and
// sleeping; worker_core.cpp never waits.
#include <algorithm>
#include <new>
#include <thread>

#include "base/deadline.hpp"
#include "worker/await_rounds.hpp"
#include "worker/counted_region.hpp"
#include "worker/progress_thread.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {
namespace {

/// How long withdrawing a region rests before it looks again, where nothing could wake it.
constexpr std::chrono::microseconds longest_drain_rest{200};

/// A thread that waits for another one's progress is woken by it; this only bounds a lost wake-up.
constexpr std::chrono::milliseconds longest_nap{100};

}  // namespace

bool worker_core::driven_elsewhere() const noexcept {
  return thread_ != nullptr && !thread_->is_current();
}

bool worker_core::wait(const operation& waited, clock::time_point until) {
  if (is_inherited()) return waited.done();  // nothing ends there
  idle_rounds idle;
  const std::shared_ptr<worker_core> kept = weak_from_this().lock();  // a handler may drop it
  progress_leader leader(*this);
  for (bool has_driven = false;; has_driven = true) {
    const std::uint32_t seen = wakes();
    if (waited.done()) return true;
    if (has_driven && until != clock::time_point::max() && api().now() >= until)
      return waited.done();
    progress_or_rest(idle, until, leader, seen, &waited);
  }
}

void worker_core::progress_or_rest(idle_rounds& idle, clock::time_point until,
                                   progress_leader& leader, std::uint32_t seen,
                                   const operation* waited) {
  if (driven_elsewhere() || !leader.take()) {
    const bool leads = thread_ == nullptr;  // one of those who wait
    if (leads) leader.has_followed();
    return leadership_.follow(std::min(until, clock::now() + longest_nap), seen, waited, leads);
  }
  lock_.let_others_in();
  try {
    if (round()) return idle.begin_again();
  } catch (const std::bad_alloc&) {  // the next round does what is left; who waits goes on
    api().relax();
    return;
  }
  if (idle.time_to_sleep(api())) sleep_on_events(until, seen);
}

void worker_core::wake_other_threads(const operation* ended) noexcept {
  leadership_.count_wake();
  // The one that drives may wait for the same, and sleep while this thread did what ends it.
  if (is_shared() && leadership_.may_sleep()) signal();
  leadership_.wake_followers(ended);
}

void worker_core::wake_if_asleep() noexcept {
  // A loop of the caller's sleeps where we do not see it.
  const bool looping = options_.progress == progress_mode::external && is_shared() && !in_handler();
  if (looping || leadership_.may_sleep()) signal();
}

bool worker_core::arm() {
  const std::lock_guard guard(lock_);
  return !has_work() && ucx_.arm();
}

/// Returns whether there is nothing to do until the event descriptor says so.
bool worker_core::prepare_to_sleep(std::uint32_t seen) {
  // Said first: what another thread starts, or ends, from here on wakes this one.
  leadership_.may_sleep(has_several_threads());
  return wakes() == seen && arm();
}

void worker_core::sleep_on_events(clock::time_point until, std::uint32_t seen) {
  if (ucx_.event_fd() < 0) {
    api().relax();
    return;
  }
  if (prepare_to_sleep(seen)) {
    std::chrono::nanoseconds limit = until_next_deadline();
    // A loop of the caller's may take what was to wake this thread: it arms the same descriptor.
    const bool beside_loop = options_.progress == progress_mode::external && is_shared();
    if (beside_loop) limit = std::min<std::chrono::nanoseconds>(limit, longest_nap);
    const clock::time_point now = api().now();
    if (until > now) {
      api().wait_readable(ucx_.event_fd(), -1,
                          std::min<std::chrono::nanoseconds>(limit, until - now));
    }
  }
  slept();
}

bool worker_core::await_round() noexcept {
  if (is_inherited()) return false;
  worker_core* const self = this;
  return await_rounds({&self, 1});
}

std::chrono::nanoseconds worker_core::until_next_deadline() {
  const std::lock_guard guard(lock_);
  return tick_clock_.until_next();
}

void worker_core::begin_drain(counted_region& region) noexcept {
  const std::lock_guard guard(lock_);
  parts_->withdraw(region);
  wake_driver();
}

bool worker_core::drain(counted_region& region, idle_rounds& idle) noexcept {
  const bool ours = thread_ == nullptr && !is_shared();
  const std::uint32_t seen = wakes();
  // Users' handlers belong to the thread that uses the worker. That may be another one.
  if (ours) look();
  {
    const std::lock_guard guard(lock_);
    if (!parts_->answering(region)) return false;
  }
  if (ours) {
    // The rest is the peer's to do, or for the thread that uses the worker.
    if (idle.time_to_sleep(api())) api().wait_readable(-1, -1, longest_drain_rest);
  } else {
    progress_leader leader(*this);
    progress_or_rest(idle, api().now() + std::chrono::milliseconds(1), leader, seen);
  }
  return true;
}

void worker_core::end_drain(counted_region& region) noexcept {
  const std::lock_guard guard(lock_);
  parts_->cut_off(region);
  // Answers that are cut off end in UCX's callbacks; those of dropped endpoints come by themselves.
  const clock::time_point last = api().now() + std::chrono::seconds(1);
  while (parts_->answering(region) && api().now() < last) {
    if (progress_ucx() == 0) api().relax();
  }
  signal();
}

}  // namespace ucx::detail
