#include "worker/round_work.hpp"

#include <new>
#include <utility>

#include "base/push_back_reserved.hpp"
#include "worker/driven_tasks.hpp"
#include "worker/handler_queue.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {

round_work::round_work(worker_core& worker, const round_agenda& agenda)
    : worker_(worker), agenda_(agenda), tasks_(std::make_shared<driven_tasks>(worker)) {
  // From the beginning: inside UCX's callbacks it may be too late.
  deferred_.reserve(reserved_places);
  next_deferred_.reserve(reserved_places);
}

void round_work::defer(move_only_handler<> work) {
  push_back_reserved(deferred_, std::move(work));
  note();
}

void round_work::post(move_only_handler<> function) {
  inbox_.add(std::move(function));
  note();
}

void round_work::post_work(move_only_handler<> work) {
  inbox_.add_work(std::move(work));
  note();
}

void round_work::hand_over(std::shared_ptr<inbox_task> work) noexcept {
  inbox_.add(std::move(work));
  note();
}

void round_work::drop_handed() noexcept {
  inbox_.drop();
  const worker_round scope(worker_);
  tasks_->close();
}

void round_work::buffer_came() noexcept {
  buffers_came_.store(true, std::memory_order_release);
  note();
}

/// Returns whether anything was handed over. A task that lacks memory is tried again in the next
/// round, and keeps no other one waiting; then this throws std::bad_alloc.
bool round_work::take_handed(worker_core& worker, handler_queue& handlers) {
  const bool has_tasks = tasks_->queue(handlers);
  if (!inbox_.has_any()) return has_tasks;
  inbox_tasks handed = inbox_.take(handlers, deferred_);
  const bool any = has_tasks || !handed.empty();
  inbox_tasks lacking;
  while (std::shared_ptr<inbox_task> next = handed.pop()) {
    try {
      next->run(worker);
    } catch (const std::bad_alloc&) {
      lacking.push(std::move(next));
    } catch (...) {
      lacking.append(std::move(handed));
      inbox_.put_back(std::move(lacking));
      throw;
    }
  }
  if (lacking.empty()) return any;
  inbox_.put_back(std::move(lacking));
  throw std::bad_alloc();
}

/// Returns false where there was no memory for some of it.
bool round_work::run_deferred() {
  bool all = true;
  std::vector<move_only_handler<>> batch =
      std::exchange(deferred_, std::exchange(next_deferred_, {}));
  for (move_only_handler<>& work : batch) {
    try {
      work();
    } catch (const std::bad_alloc&) {  // the others are not to be lost with it
      all = false;
    }
  }
  batch.clear();
  next_deferred_ = std::move(batch);
  return all;
}

/// One part that lacks memory keeps none of the others.
bool round_work::run(worker_core& worker, worker_parts& parts, handler_queue& handlers) {
  bool memory_was_short = false;
  bool handed = false;
  pending_.exchange(0, std::memory_order_acq_rel);  // what is added from here on sets it again
  struct scope {
    ~scope() {
      if (!is_done) work.note();
    }
    round_work& work;
    bool is_done = false;
  } left{*this};  // whatever is thrown
  try {
    handed = take_handed(worker, handlers);
  } catch (const std::bad_alloc&) {
    memory_was_short = true;
  }
  const bool buffers = buffers_came_.load(std::memory_order_relaxed) &&
                       buffers_came_.exchange(false, std::memory_order_acquire);
  if (buffers) parts.buffers_came();
  const bool any = !deferred_.empty() || handed || agenda_.owed;
  if (any) {
    memory_was_short = !run_deferred() || memory_was_short;
    if (agenda_.owed && !parts.pay_owed()) memory_was_short = true;
    parts.reap();
  }
  if (memory_was_short) throw std::bad_alloc();
  left.is_done = true;
  return any || buffers;
}

}  // namespace ucx::detail
