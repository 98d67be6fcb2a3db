// A worker's scheduler: the thread that drives it, now or at a time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "ucx/driven_task.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/worker.hpp"

namespace ucx {
inline namespace UCXIO_EXECUTION_NAMES {

class worker_scheduler;

namespace senders {

// When a scheduled operation is due. Each posts the task; false where the worker has ended.
struct in_next_round {
  bool operator()(ucx::detail::driven_task& due) const noexcept {
    return due.post_after(std::chrono::nanoseconds::zero());
  }
};
struct at_time {
  std::chrono::steady_clock::time_point when;
  bool operator()(ucx::detail::driven_task& due) const noexcept { return due.post_at(when); }
};
struct after_delay {
  std::chrono::nanoseconds delay;
  bool operator()(ucx::detail::driven_task& due) const noexcept { return due.post_after(delay); }
};

/// The operation state: the task is its place in the queue, or among the timers.
template <class When, class Receiver>
class scheduled_state final : private ucx::detail::driven_task {
 public:
  using operation_state_concept = execution::operation_state_tag;

  scheduled_state(std::shared_ptr<ucx::detail::driven_tasks> tasks, When when, Receiver receiver)
      : tasks_(std::move(tasks)), when_(when), receiver_(std::move(receiver)) {}

  void start() & noexcept {
    const auto stop = stop_token();
    if (!tasks_ || stop.stop_requested()) return execution::set_stopped(std::move(receiver_));
    attach(tasks_);
    if (stop.stop_possible()) on_stop_.emplace(stop, stop_mark{this});
    if (std::same_as<When, in_next_round>) hasten();
    if (when_(static_cast<ucx::detail::driven_task&>(*this))) return;
    on_stop_.reset();
    execution::set_stopped(std::move(receiver_));
  }

 private:
  struct stop_mark {
    scheduled_state* state;
    void operator()() const noexcept { state->hasten(); }
  };
  using token = std::decay_t<decltype(execution::get_stop_token(
      execution::get_env(std::declval<const Receiver&>())))>;

  token stop_token() const noexcept {
    return execution::get_stop_token(execution::get_env(receiver_));
  }
  void call(bool worker_ends) noexcept override {
    on_stop_.reset();
    if (worker_ends || stop_token().stop_requested()) {
      return execution::set_stopped(std::move(receiver_));
    }
    execution::set_value(std::move(receiver_));
  }

  std::shared_ptr<ucx::detail::driven_tasks> tasks_;
  When when_;
  Receiver receiver_;
  std::optional<execution::stop_callback_for_t<token, stop_mark>> on_stop_;
};

template <class When>
class scheduled_sender;

}  // namespace senders

/// The scheduler of a worker. Its senders complete on the thread that drives the worker, as
/// handlers. After a stop they complete with `set_stopped()`; inside `start()`, if the stop came
/// before, or the worker has ended. When the worker ends those that wait are stopped, on the thread
/// that lets the last object of it go. While such an object lives, and nothing drives the worker,
/// they wait.
/// It does not keep the worker, and may outlive it.
/// Threads: any may copy it, and start its operations.
/// Cost: a start allocates nothing.
class worker_scheduler {
 public:
  using scheduler_concept = execution::scheduler_tag;

  explicit worker_scheduler(const worker& driven) noexcept
      : tasks_(ucx::detail::tasks_of(driven)) {}

  /// Completes in the next round of progress.
  auto schedule() const noexcept;
  /// Completes when `when` has passed. Times are as fine as a millisecond.
  auto schedule_at(std::chrono::steady_clock::time_point when) const noexcept;
  /// Completes when `delay` has passed since `start()`.
  auto schedule_after(std::chrono::nanoseconds delay) const noexcept;

  execution::forward_progress_guarantee query(
      execution::get_forward_progress_guarantee_t) const noexcept {
    return execution::forward_progress_guarantee::weakly_parallel;
  }
  friend bool operator==(const worker_scheduler&, const worker_scheduler&) noexcept = default;

 private:
  template <class When>
  friend class senders::scheduled_sender;

  std::shared_ptr<ucx::detail::driven_tasks> tasks_;
};

namespace senders {

template <class When>
class scheduled_sender {
 public:
  using sender_concept = execution::sender_tag;
  using completion_signatures =
      execution::completion_signatures<execution::set_value_t(), execution::set_stopped_t()>;
  struct environment {
    worker_scheduler scheduler;
    /// Of values alone: a stop may complete elsewhere.
    worker_scheduler query(
        execution::get_completion_scheduler_t<execution::set_value_t>) const noexcept {
      return scheduler;
    }
  };

  scheduled_sender(worker_scheduler scheduler, When when) noexcept
      : scheduler_(std::move(scheduler)), when_(when) {}
  environment get_env() const noexcept { return {scheduler_}; }
  template <class Receiver>
  scheduled_state<When, Receiver> connect(Receiver receiver) const {
    return {scheduler_.tasks_, when_, std::move(receiver)};
  }

 private:
  worker_scheduler scheduler_;
  When when_;
};

}  // namespace senders

inline auto worker_scheduler::schedule() const noexcept {
  return senders::scheduled_sender<senders::in_next_round>(*this, {});
}
inline auto worker_scheduler::schedule_at(
    std::chrono::steady_clock::time_point when) const noexcept {
  return senders::scheduled_sender<senders::at_time>(*this, {when});
}
inline auto worker_scheduler::schedule_after(std::chrono::nanoseconds delay) const noexcept {
  return senders::scheduled_sender<senders::after_delay>(*this, {delay});
}

}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
