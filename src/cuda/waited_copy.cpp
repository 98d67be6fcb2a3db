#include "cuda/waited_copy.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "base/activity_spin.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Looking for longer is not worth the processor.
constexpr std::chrono::microseconds longest_look{100};

}  // namespace

void waited_copy::begin_again(std::shared_ptr<const void> keeps) noexcept {
  error.clear();
  keeps_ = std::move(keeps);
  done_.store(false, std::memory_order_relaxed);  // starting it takes a lock
}

std::error_code waited_copy::wait(clock::time_point until) noexcept {
  if (ends_soon()) return error;
  std::unique_lock guard(mutex_);
  sleeps_.store(true, std::memory_order_seq_cst);
  const bool ended =
      changed_.wait_until(guard, until, [this] { return done_.load(std::memory_order_seq_cst); });
  sleeps_.store(false, std::memory_order_relaxed);
  if (ended) return error;
  given_up_.store(true, std::memory_order_relaxed);
  return errc::timed_out;
}

bool waited_copy::ends_soon() noexcept {
  activity_spin spin(real_ucp(), longest_look, std::thread::hardware_concurrency());
  do {
    if (done_.load(std::memory_order_acquire)) return true;
  } while (!spin.time_to_sleep());
  return false;
}

/// A thread that waits sets `sleeps_` before it looks at `done_` for the last time. This sets
/// `done_` before it looks at `sleeps_`. So no wake-up is lost.
void waited_copy::done() noexcept {
  keeps_.reset();  // before anybody hears of it, who may want it gone
  done_.store(true, std::memory_order_seq_cst);
  if (!sleeps_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard guard(mutex_);
  changed_.notify_all();
}

}  // namespace ucx::detail
