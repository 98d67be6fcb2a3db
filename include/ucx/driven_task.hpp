// Work in its owner's memory, for the thread that drives a worker.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "ucx/version.hpp"

namespace ucx {

class endpoint;
class remote_region;
class request;
class worker;

namespace detail {

class driven_tasks;

/// A task that brings its place in the queue along: queueing it takes no memory, and can not fail
/// for want of it. Senders (`ucx/execution.hpp`) are made of such tasks.
/// REQUIRES: `withdraw()` before the end of the class that overrides `call()`, if it was posted.
class UCXIO_EXPORT driven_task {
 public:
  driven_task() noexcept = default;
  driven_task(const driven_task&) = delete;
  driven_task& operator=(const driven_task&) = delete;

  /// Has the thread that drives the worker of `to` call it, once, in the next round, as a handler.
  /// Returns false where the worker has ended: then it is not called. It may be posted again as
  /// soon as it is called. Takes no lock of the worker's, and makes no call of UCX's but the one
  /// that wakes a sleeping thread.
  /// Threads: any, one at a time.
  bool post(std::shared_ptr<driven_tasks> to) noexcept;
  /// Says whose timer it is going to be: before the calls below.
  void attach(std::shared_ptr<driven_tasks> to) noexcept { queue_ = std::move(to); }
  /// As `post()`, but not before `when` by the worker's clock, or before `delay` has passed. As
  /// fine as a millisecond.
  bool post_at(std::chrono::steady_clock::time_point when) noexcept;
  bool post_after(std::chrono::nanoseconds delay) noexcept;
  /// It need not wait for its time any more, nor will it where it is posted later.
  /// Threads: any, also beside `post_at()`.
  void hasten() noexcept;
  /// Takes it back. When this returns it is not called, unless it made this call. Waits for a call
  /// on another thread.
  void withdraw() noexcept;

 protected:
  virtual ~driven_task() = default;
  /// `worker_ends`: it was queued, and the worker makes no further round. It may destroy itself.
  virtual void call(bool worker_ends) noexcept = 0;

 private:
  friend class driven_tasks;
  friend class task_timers;
  enum class place { none, queue, timers };

  std::shared_ptr<driven_tasks> queue_;
  driven_task* previous_ = nullptr;  // see driven_tasks, and task_timers
  driven_task* next_ = nullptr;
  driven_task* later_ = nullptr;
  std::chrono::steady_clock::time_point when_ = {};
  place place_ = place::none;
  bool is_hasty_ = false;
};

/// Returns the tasks of the worker that an object belongs to. Null where there is none: of a handle
/// that is empty, and of a request that failed before it began.
UCXIO_EXPORT std::shared_ptr<driven_tasks> tasks_of(const worker& object) noexcept;
UCXIO_EXPORT std::shared_ptr<driven_tasks> tasks_of(const endpoint& object) noexcept;
UCXIO_EXPORT std::shared_ptr<driven_tasks> tasks_of(const remote_region& object) noexcept;
UCXIO_EXPORT std::shared_ptr<driven_tasks> tasks_of(const request& object) noexcept;

/// Returns why the calling thread can not wait for something of this worker; no error if it can.
UCXIO_EXPORT std::error_code why_not_wait(const worker& driven) noexcept;
/// Drives the worker, or waits for the thread that does, until a handler of it has set `done`.
/// REQUIRES: `why_not_wait()` gave no error.
UCXIO_EXPORT void drive_until(const worker& driven, const std::atomic<bool>& done);

}  // namespace detail
}  // namespace ucx
