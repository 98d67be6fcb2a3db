// The calls that a worker is asked for: at a time, or in its rounds.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/worker.hpp"
#include "worker/call_schedule.hpp"

namespace ucx::detail {

class handler_queue;
class worker_core;

/// Keeps the schedule, and makes its calls, without the worker's lock. A part of the worker.
class scheduled_calls {
 public:
  explicit scheduled_calls(worker_core& worker) noexcept : worker_(worker) {}
  scheduled_calls(const scheduled_calls&) = delete;
  scheduled_calls& operator=(const scheduled_calls&) = delete;

  // From any thread; take the lock themselves. Of an inherited worker nothing is ever called.
  std::shared_ptr<scheduled> at(clock::time_point when, move_only_handler<> function);
  /// See worker::call_every.
  std::shared_ptr<scheduled> every(clock::duration period, move_only_handler<> function);
  std::shared_ptr<scheduled> in_progress(progress_phase when, bool repeats,
                                         move_only_handler<> function);
  /// See scheduled_call::cancel.
  bool cancel(scheduled& call) noexcept;

  // For rounds.
  /// Returns whether a round has to call anything in this phase. From any thread.
  bool has(progress_phase when) const noexcept { return schedule_.has(when); }
  /// Calls that. REQUIRES: the calling thread does not hold the lock.
  void run(progress_phase when, handler_queue& handlers);
  // Under the lock.
  bool wants_round() const noexcept { return schedule_.wants_round(); }
  /// Queues the calls that are due by now, as far as there is memory; returns when the next one is.
  clock::time_point queue_due(clock::time_point now, handler_queue& handlers);
  /// The worker ends. The caller destroys the result without the lock.
  call_schedule::ended end() noexcept { return schedule_.end(); }

 private:
  std::shared_ptr<scheduled> make(move_only_handler<> function) const;
  void run(scheduled& call);

  worker_core& worker_;
  call_schedule schedule_;
  std::vector<std::shared_ptr<scheduled>> called_now_;  // by the round that is made now
};

}  // namespace ucx::detail
