// A UCP worker: its lock, its progress, its clock, and what it owes to others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "detail/context_core.hpp"
#include "detail/intrusive_list.hpp"
#include "detail/operation.hpp"
#include "detail/pool.hpp"
#include "detail/region_service.hpp"
#include "detail/worker_lock.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class connection_table;
class endpoint_core;
class message_router;
class operation_pools;
class progress_thread;

class worker_core {
 public:
  /// Makes a worker; the last reference stops its thread, wherever it is dropped.
  static std::shared_ptr<worker_core> make(std::shared_ptr<context_core> context,
                                           const worker_options& options, std::string& what,
                                           std::error_code& ec);
  worker_core(const worker_core&) = delete;
  worker_core& operator=(const worker_core&) = delete;

  context_core& context() const noexcept { return *context_; }
  ucp_api& api() const noexcept { return context_->api(); }
  ucp_worker_h handle() const noexcept { return handle_; }
  const worker_options& options() const noexcept { return options_; }
  worker_lock& lock() noexcept { return lock_; }
  connection_table& connections() noexcept { return *connections_; }
  message_router& router() noexcept { return *router_; }
  region_service& service() noexcept { return service_; }
  operation_pools& pools() noexcept { return *pools_; }
  std::uint64_t random() noexcept { return random_(); }

  worker_address address(std::error_code& ec);

  /// One round under the lock: UCX, then what UCX's callbacks left to do, then the clock.
  bool progress();
  /// One round on behalf of somebody who waits; `idle` counts rounds that found nothing, and
  /// decides between spinning, yielding and sleeping (until `until` at most).
  void progress_or_rest(unsigned& idle, clock::time_point until);
  /// Waits until `waited` is done, or `until` has passed; returns whether it is done.
  bool wait(const operation& waited, clock::time_point until);
  /// Waits until `condition()` (called under the lock) holds, or `until`; returns whether it holds.
  template <class Condition>
  bool wait_until(clock::time_point until, Condition condition);

  /// Returns whether the calling thread is inside a handler that this worker runs.
  bool in_handler() const noexcept;
  /// Returns whether waiting has to be left to the worker's own thread.
  bool driven_elsewhere() const noexcept;

  int event_fd() const noexcept { return event_fd_; }
  bool arm();
  std::chrono::nanoseconds until_next_deadline();
  void signal() noexcept;
  void post(move_only_handler<> function);

  // For operations, under the lock.
  void add_outstanding(operation& started) noexcept;
  void remove_outstanding(operation& ended) noexcept { outstanding_.remove(ended); }
  void queue_handler(operation& ended) noexcept;
  void wake_waiters() noexcept;
  /// Keeps an endpoint that UCX has not let go of until UCX's worker is gone.
  void bury(endpoint_core& endpoint);
  /// Runs now what an ended operation or connection left to do, unless a round will.
  void settle();
  /// Queues work for after UCX's callbacks have returned.
  void defer(move_only_handler<> work);
  /// Returns when an operation with this time-out (zero: the default) has to end.
  clock::time_point deadline_after(std::chrono::nanoseconds timeout) noexcept;
  /// Makes the next look at the clock look at deadlines too.
  void tick_soon() noexcept { tick_by(clock::time_point::min()); }
  void tick_by(clock::time_point when) noexcept;
  /// Ends what UCX does for `connection`, with `why`.
  void fail_outstanding_of(const endpoint_core& connection, std::error_code why) noexcept;
  /// One round of UCX alone. Under the lock.
  unsigned progress_ucx() noexcept;
  /// Returns whether this is called from UCX's callbacks, where UCX's objects can not be destroyed.
  bool inside_ucx() const noexcept { return inside_ucx_; }

  /// Waits until no answer reads `region`; drops connections that do not let go.
  void drain(region_core& region) noexcept;

 private:
  friend class progress_thread;
  struct handler_scope;

  worker_core(std::shared_ptr<context_core> context, const worker_options& options);
  ~worker_core();
  void open(std::string& what, std::error_code& ec);
  void retire() noexcept;
  bool run_deferred();
  void tick(clock::time_point now);
  bool round();
  void destroy() noexcept;
  void sleep_on_events(clock::time_point until);
  template <class Condition>
  void nap(clock::time_point until, Condition condition);

  std::shared_ptr<context_core> context_;
  worker_options options_;
  worker_lock lock_;
  ucp_worker_h handle_ = nullptr;
  int event_fd_ = -1;
  std::mt19937_64 random_;
  std::unique_ptr<operation_pools> pools_;
  std::unique_ptr<connection_table> connections_;
  std::unique_ptr<message_router> router_;
  region_service service_;

  intrusive_list<operation, outstanding_tag> outstanding_;
  std::vector<operation*> ended_;  // their handlers are due; one reference each
  std::vector<move_only_handler<>> deferred_;
  clock::time_point next_tick_;
  clock::time_point now_hint_;  // when the clock was last read
  unsigned rounds_since_clock_ = 0;
  bool inside_ucx_ = false;
  std::vector<endpoint_core*> buried_;

  std::mutex posted_mutex_;
  std::vector<move_only_handler<>> posted_;
  std::atomic<bool> has_posted_{false};

  std::mutex wait_mutex_;
  std::condition_variable wait_condition_;
  std::atomic<int> waiters_{0};

  std::unique_ptr<progress_thread> thread_;
};

template <class Condition>
bool worker_core::wait_until(clock::time_point until, Condition condition) {
  unsigned idle = 0;
  for (;;) {
    {
      const std::lock_guard guard(lock_);
      if (condition()) return true;
    }
    if (api().now() >= until) return false;
    progress_or_rest(idle, until);
  }
}

}  // namespace ucx::detail
