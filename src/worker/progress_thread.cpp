#include "worker/progress_thread.hpp"

#include <new>
#include <utility>

#include "base/activity_spin.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void progress_thread::start() {
  departed_threads::instance();  // before what is destroyed at exit can hold this worker
  seat_.front().thread = std::thread([this] {
    id_.store(std::this_thread::get_id());
    loop();
  });
}

void progress_thread::stop() noexcept {
  stopping_.store(true);
  worker_.signal();
  seat_.front().thread.join();
}

/// From now on the process's exit waits for this thread. Another one that sees what this one does
/// next may call `exit()`.
void progress_thread::leave_with_worker() noexcept {
  departing_ = departed_threads::instance().add(std::move(seat_));
  owns_worker_ = true;
  stopping_.store(true);
}

void progress_thread::loop() {
  if (const auto& start = worker_.options().on_thread_start) {
    worker_.handlers_.call_and_report([&] { start(); });
  }
  if (worker_.options().progress == progress_mode::polling_thread) {
    poll();
  } else {
    sleep_and_spin();
  }
  if (!owns_worker_) return;
  const departed_threads::ticket self = departing_;
  worker_.destroy();  // and with it this object
  departed_threads::instance().end(self);
}

void progress_thread::poll() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    worker_.lock().let_others_in();
    if (!make_round()) worker_.api().relax();
  }
}

/// Where memory is short, the next round does what is left.
bool progress_thread::make_round() {
  try {
    return worker_.round();
  } catch (const std::bad_alloc&) {
    worker_.api().relax();
    return true;
  }
}

void progress_thread::sleep_and_spin() {
  activity_spin spin(worker_.api(), worker_.options().spin, std::thread::hardware_concurrency());
  while (!stopping_.load(std::memory_order_relaxed)) {
    worker_.lock().let_others_in();
    if (make_round()) {
      spin.begin_again();
    } else if (spin.time_to_sleep()) {
      worker_.sleep_on_events(clock::time_point::max(), worker_.wakes());
      spin.slept();
    }
  }
}

}  // namespace ucx::detail
