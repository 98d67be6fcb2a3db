#include "detail/progress_thread.hpp"

#include <chrono>
#include <utility>

#include "detail/worker_core.hpp"

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

void progress_thread::leave_with_worker() noexcept {
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
  departed_threads& departed = departed_threads::instance();
  const departed_threads::ticket self = departed.add(std::move(seat_));
  worker_.destroy();  // and with it this object
  departed.end(self);
}

void progress_thread::poll() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    worker_.lock().let_others_in();
    if (!worker_.round()) worker_.api().relax();
  }
}

void progress_thread::sleep_and_spin() {
  // Spinning pays only where another core can do the work that is waited for.
  const bool may_spin = std::thread::hardware_concurrency() > 1;
  bool active = true;  // since the last sleep
  clock::time_point last_activity = worker_.api().now();
  while (!stopping_.load(std::memory_order_relaxed)) {
    worker_.lock().let_others_in();
    if (worker_.round()) {
      active = true;
      last_activity = worker_.api().now();
    } else if (active && may_spin && worker_.api().now() - last_activity < worker_.options().spin) {
      if (worker_.api().relax()) active = false;  // the core is wanted: no more spinning
    } else {
      worker_.sleep_on_events(clock::time_point::max(), worker_.wakes());
      active = false;
    }
  }
}

}  // namespace ucx::detail
