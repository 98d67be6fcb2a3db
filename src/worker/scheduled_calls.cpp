#include "worker/scheduled_calls.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "worker/handler_queue.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

constexpr clock::duration least_period = std::chrono::milliseconds(1);  // as fine as timers are

}  // namespace

bool scheduled::is_inherited() const noexcept {
  const std::shared_ptr<worker_core> used = worker.lock();
  return used && used->is_inherited();
}

std::shared_ptr<scheduled> scheduled_calls::make(move_only_handler<> function) const {
  auto made = std::make_shared<scheduled>();
  made->worker = worker_.weak_from_this();
  made->function = std::move(function);
  return made;
}

std::shared_ptr<scheduled> scheduled_calls::at(clock::time_point when,
                                               move_only_handler<> function) {
  std::shared_ptr<scheduled> made = make(std::move(function));
  if (worker_.is_inherited()) return made;
  const std::lock_guard guard(worker_.lock());
  schedule_.at(when, made);
  worker_.tick_by(when);
  return made;
}

std::shared_ptr<scheduled> scheduled_calls::every(clock::duration period,
                                                  move_only_handler<> function) {
  std::shared_ptr<scheduled> made = make(std::move(function));
  made->repeats = true;
  made->period = std::max(period, least_period);
  if (worker_.is_inherited()) return made;
  const clock::time_point first = after(worker_.api().now(), made->period);
  const std::lock_guard guard(worker_.lock());
  schedule_.at(first, made);
  worker_.tick_by(first);
  return made;
}

std::shared_ptr<scheduled> scheduled_calls::in_progress(progress_phase when, bool repeats,
                                                        move_only_handler<> function) {
  std::shared_ptr<scheduled> made = make(std::move(function));
  made->repeats = repeats;
  if (worker_.is_inherited()) return made;
  const std::lock_guard guard(worker_.lock());
  schedule_.in_progress(when, made);
  worker_.wake_driver();
  return made;
}

bool scheduled_calls::cancel(scheduled& call) noexcept {
  move_only_handler<> unused;  // destroyed behind the lock
  bool kept = false;
  bool running = false;
  {
    const std::lock_guard guard(worker_.lock());
    kept = schedule_.cancel(call);
    running = call.is_running();
    if (!running) unused = std::move(call.function);
  }
  if (running && !worker_.in_handler()) {
    worker_.wait_until(clock::time_point::max(), [&] { return !call.is_running(); });
  }
  return kept;
}

/// Calls it; what it throws comes out.
void scheduled_calls::run(scheduled& call) {
  struct scope {
    worker_core& worker;
    scheduled& call;
    ~scope() {
      move_only_handler<> unused;
      {
        const std::lock_guard guard(worker.lock());
        const bool again = call.repeats && call.now() == scheduled::state::running;
        if (!again) unused = std::move(call.function);
        call.is_due = false;
        call.reach(again ? scheduled::state::waiting : scheduled::state::over);
      }
      worker.wake_waiters();
    }
  };
  {
    const std::lock_guard guard(worker_.lock());
    if (call.is_over()) return;
    call.reach(scheduled::state::running);
  }
  const scope running{worker_, call};
  call.function();
}

void scheduled_calls::run(progress_phase when, handler_queue& handlers) {
  std::unique_lock guard(worker_.lock());
  // Where a caller further out holds it, or another thread is in a handler, a later round will do
  // it.
  if (!worker_.lock().is_outermost() || handlers.running()) return;
  schedule_.take(when, called_now_);
  handlers.run_between(guard, [&] {
    for (const std::shared_ptr<scheduled>& each : called_now_) {
      handlers.call_and_report([&] { run(*each); });
    }
    called_now_.clear();
  });
  if (handlers.take_left_over()) worker_.signal();
}

clock::time_point scheduled_calls::queue_due(clock::time_point now, handler_queue& handlers) {
  try {
    for (;;) {
      handlers.make_room();  // what is taken out is not lost
      std::shared_ptr<scheduled> due = schedule_.take_due(now);
      if (!due) break;
      handlers.add([this, due = std::move(due)] { run(*due); });
    }
  } catch (const std::bad_alloc&) {  // the next tick has what is left
  }
  return schedule_.next();
}

}  // namespace ucx::detail
