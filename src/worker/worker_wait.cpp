// How threads wait for a worker: spinning, yielding and sleeping. Apart from worker_core.cpp, which
// never waits.
#include <algorithm>
#include <new>
#include <thread>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
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
  if (is_forked_child()) return waited.done();  // nothing ends there
  idle_rounds idle;
  const std::shared_ptr<worker_core> kept = weak_from_this().lock();  // a handler may drop it
  driver_seat seat(*this);
  for (;;) {
    const std::uint32_t seen = wakes();
    if (waited.done()) return true;
    if (until != clock::time_point::max() && api().now() >= until) return waited.done();
    progress_or_rest(idle, until, seat, seen, &waited);
  }
}

void worker_core::progress_or_rest(idle_rounds& idle, clock::time_point until, driver_seat& seat,
                                   std::uint32_t seen, const operation* waited) {
  if (driven_elsewhere() || !seat.take()) {
    seat.slept_ = thread_ == nullptr;
    return nap(until, seen, waited);
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

void worker_core::nap(clock::time_point until, std::uint32_t seen, const operation* waited) {
  waiting_.sleep(waited, std::min(until, clock::now() + longest_nap), [&] {
    if (thread_ == nullptr && !seat_taken_.load(std::memory_order_seq_cst)) return false;
    return wakes() == seen || (waited != nullptr && !waited->done());
  });
}

void worker_core::wake_other_threads(const operation* ended) noexcept {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  // The one that drives may wait for the same, and sleep while this thread did what ends it.
  if (shared() && driver_sleeps_.load(std::memory_order_seq_cst)) signal();
  if (ended != nullptr) {
    waiting_.wake_for(*ended);
  } else {
    waiting_.wake_for_anything();
  }
}

void worker_core::wake_if_asleep() noexcept {
  // A loop of the caller's sleeps where we do not see it.
  const bool looping = options_.progress == progress_mode::external && shared() && !in_handler();
  if (looping || driver_sleeps_.load(std::memory_order_seq_cst)) signal();
}

bool worker_core::arm() {
  const std::lock_guard guard(lock_);
  if (event_fd_ < 0 || has_work()) return false;
  return api().worker_arm(handle_) == UCS_OK;
}

/// Returns whether there is nothing to do until the event descriptor says so.
bool worker_core::prepare_to_sleep(std::uint32_t seen) {
  // Said first: what another thread starts, or ends, from here on wakes this one.
  driver_sleeps_.store(thread_ != nullptr || shared(), std::memory_order_seq_cst);
  return wakes() == seen && arm();
}

void worker_core::sleep_on_events(clock::time_point until, std::uint32_t seen) {
  if (event_fd_ < 0) {
    api().relax();
    return;
  }
  if (prepare_to_sleep(seen)) {
    std::chrono::nanoseconds limit = until_next_deadline();
    // A loop of the caller's may take what was to wake this thread: it arms the same descriptor.
    const bool beside_loop = options_.progress == progress_mode::external && shared();
    if (beside_loop) limit = std::min<std::chrono::nanoseconds>(limit, longest_nap);
    const clock::time_point now = api().now();
    if (until > now) {
      api().wait_readable(event_fd_, -1, std::min<std::chrono::nanoseconds>(limit, until - now));
    }
  }
  slept();
}

bool worker_core::await_round() noexcept {
  if (is_forked_child()) return false;
  worker_core* const self = this;
  return await_rounds({&self, 1});
}

std::chrono::nanoseconds worker_core::until_next_deadline() {
  const std::lock_guard guard(lock_);
  if (next_tick_ == clock::time_point::max()) return std::chrono::nanoseconds::max();
  const clock::time_point now = api().now();
  if (next_tick_ > now) return next_tick_ - now;
  // The clock that rounds look at first may be behind: the next one looks at this one.
  next_tick_ = clock::time_point::min();
  return std::chrono::nanoseconds::zero();
}

void worker_core::signal() noexcept {
  if (event_fd_ >= 0) api().worker_signal(handle_);
}

void worker_core::begin_drain(counted_region& region) noexcept {
  const std::lock_guard guard(lock_);
  parts_->withdraw(region);
  wake_driver();
}

bool worker_core::drain(counted_region& region, idle_rounds& idle) noexcept {
  const bool ours = thread_ == nullptr && !shared();
  const std::uint32_t seen = wakes();
  {
    const std::lock_guard guard(lock_);
    if (ours) {
      // Users' handlers belong to the thread that uses the worker, which may be another one, and
      // may sleep: it is left everything that only it may do.
      const worker_round scope(*this);
      bool active = progress_ucx() > 0;
      try {
        active = run_work() || active;
      } catch (const std::bad_alloc&) {  // what is left is done later
      }
      if (active) signal();
    }
    if (!parts_->answering(region)) return false;
  }
  if (ours) {
    // What is left to do is the peer's, or of the thread that uses the worker.
    if (idle.time_to_sleep(api())) api().wait_readable(-1, -1, longest_drain_rest);
  } else {
    driver_seat seat(*this);
    progress_or_rest(idle, api().now() + std::chrono::milliseconds(1), seat, seen);
  }
  return true;
}

void worker_core::end_drain(counted_region& region) noexcept {
  const std::lock_guard guard(lock_);
  parts_->cut_off(region);
  // What is cut off ends in UCX's callbacks; those of dropped endpoints come by themselves.
  const clock::time_point last = api().now() + std::chrono::seconds(1);
  while (parts_->answering(region) && api().now() < last) {
    if (progress_ucx() == 0) api().relax();
  }
  signal();
}

}  // namespace ucx::detail
