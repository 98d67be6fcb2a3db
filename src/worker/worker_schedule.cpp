// What a worker is asked to call: at a time, in its rounds, or from other threads. Apart from
// worker_core.cpp, which makes the rounds.
#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "worker/driven_connection.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {
std::shared_ptr<scheduled> worker_core::call_at(clock::time_point when,
                                                move_only_handler<> function) {
  auto made = std::make_shared<scheduled>();
  made->worker = weak_from_this();
  made->function = std::move(function);
  const std::lock_guard guard(lock_);
  schedule_.at(when, made);
  tick_by(when);
  return made;
}

std::shared_ptr<scheduled> worker_core::call_in_progress(progress_phase when, bool repeats,
                                                         move_only_handler<> function) {
  auto made = std::make_shared<scheduled>();
  made->worker = weak_from_this();
  made->function = std::move(function);
  made->repeats = repeats;
  const std::lock_guard guard(lock_);
  schedule_.in_progress(when, made);
  wake_driver();
  return made;
}

bool worker_core::cancel(scheduled& call) noexcept {
  move_only_handler<> unused;  // destroyed behind the lock
  bool kept = false;
  bool running = false;
  {
    const std::lock_guard guard(lock_);
    kept = schedule_.cancel(call);
    running = call.now == scheduled::stage::running;
    if (!running) {
      unused = std::move(call.function);
      call.over = true;
    }
  }
  if (running && !in_handler()) {
    wait_until(clock::time_point::max(), [&] { return call.now != scheduled::stage::running; });
  }
  return kept;
}

void worker_core::report_thrown() noexcept {
  const worker_core* const worker = worker_round::worker();
  if (worker == nullptr) std::terminate();
  handler_queue::report_to(*worker->reporter(), std::current_exception());
}

/// Calls it, without the lock; what it throws comes out.
void worker_core::run(scheduled& call) {
  struct scope {
    worker_core& worker;
    scheduled& call;
    ~scope() {
      move_only_handler<> unused;
      {
        const std::lock_guard guard(worker.lock_);
        const bool again = call.repeats && !call.canceled;
        call.now = again ? scheduled::stage::waiting : scheduled::stage::ended;
        if (!again) unused = std::move(call.function);
        call.over = !again;
      }
      worker.wake_waiters();
    }
  };
  {
    const std::lock_guard guard(lock_);
    if (call.canceled) return;
    call.now = scheduled::stage::running;
  }
  const scope running{*this, call};
  call.function();
}

void worker_core::run_in_progress(progress_phase when) {
  std::unique_lock guard(lock_);
  // Where a caller of ours holds it, or another thread is in a handler, a later round will do it.
  if (!lock_.is_outermost() || handlers_.running()) return;
  schedule_.take(when, called_in_progress_);
  handlers_.run_between(guard, [this] {
    for (const std::shared_ptr<scheduled>& each : called_in_progress_) {
      handlers_.call_and_report([&] { run(*each); });
    }
    called_in_progress_.clear();
  });
  if (handlers_.take_left_over()) signal();
}

void worker_core::post(move_only_handler<> function) {
  inbox_.add(std::move(function));
  signal();
}

void worker_core::post_work(move_only_handler<> work) {
  inbox_.add_work(std::move(work));
  signal();
}

void worker_core::hand_over(std::shared_ptr<handed_work> work) noexcept {
  inbox_.add(std::move(work));
  signal();
}

void worker_core::buffer_came() noexcept {
  buffers_came_.store(true, std::memory_order_release);
  signal();
}

/// Does what was handed over: what is handed over meanwhile waits for the next round, and so does
/// what is left when there is no memory for something. Returns whether there was any.
bool worker_core::take_posted() {
  if (!inbox_.has_any()) return false;
  handed_queue handed = inbox_.take(handlers_, deferred_);
  const bool any = !handed.empty();
  try {
    while (const std::shared_ptr<handed_work> next = handed.pop()) next->run(*this);
  } catch (...) {
    inbox_.put_back(std::move(handed));
    throw;
  }
  return any;
}

/// One part that lacks memory keeps none of the others.
bool worker_core::run_work() {
  bool memory_was_short = false;
  bool handed = false;
  try {
    handed = take_posted();
  } catch (const std::bad_alloc&) {
    memory_was_short = true;
  }
  const bool buffers = buffers_came_.load(std::memory_order_relaxed) &&
                       buffers_came_.exchange(false, std::memory_order_acquire);
  if (buffers) parts_->buffers_came();
  if (deferred_.empty() && !handed && !agenda_.owed) {
    if (memory_was_short) throw std::bad_alloc();
    return buffers;
  }
  std::vector<move_only_handler<>> batch =
      std::exchange(deferred_, std::exchange(next_deferred_, {}));
  for (move_only_handler<>& work : batch) {
    try {
      work();
    } catch (const std::bad_alloc&) {  // the others are not to be lost with it
      memory_was_short = true;
    }
  }
  batch.clear();
  next_deferred_ = std::move(batch);
  if (agenda_.owed && !parts_->pay_owed()) memory_was_short = true;
  parts_->reap();
  if (memory_was_short) throw std::bad_alloc();
  return true;
}

void worker_core::tick_by(clock::time_point when) noexcept {
  if (when >= next_tick_) return;
  next_tick_ = when;
  wake_driver();  // it may be asleep until what was the first deadline so far
}

void worker_core::connection_failed(const driven_connection& connection,
                                    std::error_code why) noexcept {
  outstanding_.fail(connection, why);
  parts_->connection_failed(connection);
}

}  // namespace ucx::detail
