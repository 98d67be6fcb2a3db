// A UCP worker: its lock, its progress, its clock, and what it owes to others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/idle_rounds.hpp"
#include "base/intrusive_list.hpp"
#include "base/part_table.hpp"
#include "base/pool.hpp"
#include "base/result.hpp"
#include "cuda/device_copiers.hpp"
#include "cuda/staging_shelf.hpp"
#include "ucx/context.hpp"
#include "ucx/worker.hpp"
#include "worker/context_core.hpp"
#include "worker/handler_queue.hpp"
#include "worker/operation.hpp"
#include "worker/outstanding_operations.hpp"
#include "worker/progress_leader.hpp"
#include "worker/round_work.hpp"
#include "worker/scheduled_calls.hpp"
#include "worker/tick_clock.hpp"
#include "worker/ucx_worker.hpp"
#include "worker/worker_lock.hpp"
#include "worker/worker_parts.hpp"

namespace ucx::detail {

struct arrived_message;
class control_server;
class driven_connection;
class progress_thread;
struct retirement;

/// One round after the other: UCX, the work that this leaves, the clock, and the handlers that are
/// due. It has more functions, and parts, than a class should, because all that is done at a worker
/// meets here. Each function combines two parts: it queues something, for example, and wakes the
/// thread that drives.
class worker_core : public std::enable_shared_from_this<worker_core> {
 public:
  using make_parts = std::unique_ptr<worker_parts> (*)(worker_core& worker);

  /// Makes a worker; the last reference stops its thread, wherever it is dropped.
  static result<std::shared_ptr<worker_core>> make(std::shared_ptr<context_core> context,
                                                   make_parts parts, const worker_options& options);
  /// Uses a worker that was made elsewhere; where it fails, that stays its maker's.
  static result<std::shared_ptr<worker_core>> adopt(std::shared_ptr<context_core> context,
                                                    ucp_worker_h made, ownership owner,
                                                    make_parts parts,
                                                    const worker_options& options);
  worker_core(const worker_core&) = delete;
  worker_core& operator=(const worker_core&) = delete;

  context_core& context() const noexcept { return *context_; }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  const std::shared_ptr<context_core>& shared_context() const noexcept { return context_; }
  ucp_api& api() const noexcept { return context_->api(); }
  ucx_worker& ucx() noexcept { return ucx_; }
  const ucx_worker& ucx() const noexcept { return ucx_; }
  ucp_worker_h handle() const noexcept { return ucx_.handle(); }
  const worker_options& options() const noexcept { return options_; }
  worker_lock& lock() noexcept { return lock_; }
  connection_table& connections() noexcept { return connections_; }
  frame_sender& sender() noexcept { return sender_; }
  message_exchange& messages() noexcept { return messages_; }
  region_service& service() noexcept { return service_; }
  detail::staging_shelf& staging_shelf() noexcept { return staging_; }
  device_copiers& copiers() noexcept { return copiers_; }
  /// Returns the one `Part` of this worker, made when it is first asked for; it goes with the
  /// worker.
  template <class Part>
  Part& part() {
    return shared_parts_.get<Part>(*this);
  }
  /// The idle operations of one kind.
  template <class Operation>
  pool<Operation>& pool_of() {
    return part<pool<Operation>>();
  }
  /// For the parts, under the lock.
  round_agenda& agenda() noexcept { return agenda_; }
  /// Sets the server that answers the control messages of peers that connect; null: there is none.
  void set_control_server(class control_server* server) noexcept { control_server_ = server; }
  class control_server* control_server() const noexcept {
    return control_server_;
  }
  /// A number that tells this worker from all others, of any process.
  std::uint64_t identity() const noexcept { return identity_; }
  result<worker_attributes> attributes();
  /// Safe from any thread.
  staging_statistics staging() const noexcept;
  /// Returns bits that can not be foreseen.
  std::uint64_t random();

  result<worker_address> address();

  /// One round, unless the worker's own thread makes them. Under the lock it runs UCX, then what
  /// UCX's callbacks left to do, then the clock. Without the lock it runs the handlers that are
  /// due.
  bool progress();
  /// One round without users' handlers, and without the clock: under the lock UCX, and what this
  /// leaves to do. The thread that drives the worker calls the handlers. Returns whether something
  /// happened.
  bool look() noexcept;
  /// For calls that move bytes without UCX, after which the caller may make no round: looks, where
  /// the last such look was some milliseconds ago. Else a peer that died would not be noticed.
  /// Under the lock.
  void look_now_and_then() noexcept;
  /// One round on behalf of somebody who waits; `idle` counts rounds that found nothing, and
  /// decides between spinning, yielding and sleeping (until `until` at most). Where another thread
  /// drives, sleeps until something has happened since `wakes()` was `seen`; where all that counts
  /// is `waited`, until that has ended.
  void progress_or_rest(idle_rounds& idle, clock::time_point until, progress_leader& leader,
                        std::uint32_t seen, const operation* waited = nullptr);
  /// Which of the waiting threads drives it, and how the others sleep.
  progress_leadership& leadership() noexcept { return leadership_; }
  std::uint32_t wakes() const noexcept { return leadership_.wakes(); }
  /// Waits until `waited` is done, or `until` has passed; returns whether it is done. Makes one
  /// round at least: a loop of waits without time drives the worker, too.
  bool wait(const operation& waited, clock::time_point until);
  /// Waits until `condition()` (called under the lock) holds, or `until`; returns whether it holds.
  /// Makes one round at least.
  template <class Condition>
  bool wait_until(clock::time_point until, Condition condition);

  /// Waits until the worker's own thread, if there is one, has ended what it does now, handlers
  /// too; `close_timeout` at most.
  bool await_round() noexcept;
  /// The program's handle goes, and no round may follow. Handlers that are due may own what keeps
  /// the worker: they run now, or behind the one that lets the handle go.
  void handle_gone() noexcept;

  /// Returns whether the calling thread is inside a round of this worker: in a handler, in the
  /// library's own work, or in UCX. Nothing can be waited for there.
  bool in_handler() const noexcept;
  /// Returns who is told what handlers throw.
  std::shared_ptr<const std::function<void(std::exception_ptr)>> reporter() const noexcept {
    return handlers_.reporter();
  }
  /// Tells of what users' code threw where nothing may be thrown: to the worker of which this
  /// thread makes a round. Where it makes none the process ends. REQUIRES: it is being caught.
  static void report_thrown() noexcept;
  /// Returns whether waiting has to be left to the worker's own thread.
  bool driven_elsewhere() const noexcept;

  /// Returns whether several threads may use it at a time.
  bool is_shared() const noexcept { return options_.thread_mode == thread_mode::multi; }
  /// Returns whether it is shared, or has a thread.
  bool has_several_threads() const noexcept { return thread_ != nullptr || is_shared(); }

  bool arm();
  std::chrono::nanoseconds until_next_deadline();
  void signal() noexcept { ucx_.signal(); }
  void post(move_only_handler<> function);
  /// As `post`, for work of the library's own: it runs under the lock.
  void post_work(move_only_handler<> work);
  /// As `post_work`, whatever memory is left.
  void hand_over(std::shared_ptr<inbox_task> work) noexcept;

  /// Users' tasks, and those that came into that queue. From any thread.
  const std::shared_ptr<driven_tasks>& tasks() const noexcept { return work_.tasks(); }
  void tasks_came() noexcept {
    work_.tasks_came();
    signal();
  }

  /// The calls at a time, and in rounds.
  scheduled_calls& calls() noexcept { return calls_; }

  /// A buffer came back that a receive of this worker waits for. From any thread, under any lock.
  void buffer_came() noexcept {
    work_.buffer_came();
    signal();
  }

  /// Those that have begun. Under the lock.
  outstanding_operations& outstanding() noexcept { return outstanding_; }

  // For operations, under the lock.
  void add_outstanding(operation& started) noexcept;
  /// Writes into the log how an operation ended, where the log wants it.
  void log_end(const operation& ended, std::error_code outcome) {
    if (!context_->log().writes(log_level::debug)) return;
    write_end(ended.sequence(), ended.describe(), ended.connection(), outcome);
  }
  /// Writes the end of one that was over within its call, and was no operation.
  void log_done(const std::string& what, const driven_connection& over) {
    write_end(outstanding_.next_sequence(), what, &over, {});
  }
  /// Makes room for the handler of an operation, so that it can be queued whatever memory is left.
  void expect_handler() { handlers_.expect(); }
  void forgo_handler() noexcept { handlers_.forgo(); }
  void queue_handler(operation& ended) noexcept;
  void queue_handler(arrived_message& active);
  /// Queues a call of the user's code: it runs behind those that are due, without the lock.
  void queue_handler(move_only_handler<> function);
  /// As `queue_handler`, of a function that was expected.
  void queue_expected_handler(move_only_handler<> function) noexcept;
  /// Something has changed that threads may wait for, other than the end of an operation.
  void wake_waiters() noexcept {
    if (has_several_threads()) wake_other_threads(nullptr);
  }
  void wake_waiters_for(const operation& ended) noexcept {
    if (has_several_threads()) wake_other_threads(&ended);
  }
  /// Wakes the thread that drives, if it sleeps or may: there is something for it to do.
  void wake_driver() noexcept {
    if (is_shared() || leadership_.may_sleep()) wake_if_asleep();
  }
  /// Runs now what an ended operation or connection left to do, unless a round will. Not under the
  /// lock.
  void settle() noexcept;
  /// Queues the library's own work for after UCX's callbacks have returned: it runs under the lock,
  /// and must not call users' code.
  void defer(move_only_handler<> work);
  /// Returns when an operation with this time-out (zero: the default) has to end.
  clock::time_point deadline_after(std::chrono::nanoseconds timeout) noexcept;
  /// Makes the next look at the clock look at deadlines too.
  void tick_soon() noexcept { tick_by(clock::time_point::min()); }
  void tick_by(clock::time_point when) noexcept;
  /// Ends what UCX does for `connection`, with `why`.
  void connection_failed(const driven_connection& connection, std::error_code why) noexcept;
  /// One round of UCX alone. Under the lock.
  unsigned progress_ucx() noexcept;
  /// Call it when UCX was asked to close a socket outside its rounds. UCX's thread may have left
  /// this worker a message about that socket. It is to be read before another worker's socket gets
  /// the number (docs/architecture.md, "Facts about UCX behind all this"). Under the lock.
  void socket_closed() noexcept { socket_closed_ = true; }
  /// A callback of a borrowed worker of UCX's is over: it may have been the last.
  void called_back() noexcept;
  /// Returns whether this is called from UCX's callbacks, where UCX's objects can not be destroyed.
  bool inside_ucx() const noexcept;

  // For withdrawing a region, from any thread.
  /// Ends the answers that can end at once.
  void begin_drain(counted_region& region) noexcept;
  /// Lets answers go on, for a moment at most, by what the calling thread may do for this worker;
  /// returns whether some still read `region`.
  bool drain(counted_region& region, idle_rounds& idle) noexcept;
  /// Drops the connections that have not let go.
  void end_drain(counted_region& region) noexcept;

 private:
  friend class connection_table;
  friend class progress_thread;
  friend struct retirement;
  friend class worker_set;

  worker_core(std::shared_ptr<context_core> context, make_parts parts,
              const worker_options& options);
  ~worker_core() = default;
  result<void> open();
  result<void> start_thread();
  void retire() noexcept;
  void write_end(std::uint64_t sequence, const std::string& what, const driven_connection* over,
                 std::error_code outcome);
  bool run_work();
  /// `kept` is this worker, where the caller has it.
  bool run_handlers(std::unique_lock<worker_lock>& guard, const std::shared_ptr<worker_core>& kept);
  bool has_work() const noexcept;
  bool look_at_clock();
  void tick(clock::time_point now);
  bool round();
  void destroy() noexcept;
  bool end() noexcept;
  bool leave() noexcept;
  void finish() noexcept;
  bool prepare_to_sleep(std::uint32_t seen);
  void slept() noexcept { leadership_.may_sleep(false); }
  void sleep_on_events(clock::time_point until, std::uint32_t seen);
  void wake_if_asleep() noexcept;
  void wake_other_threads(const operation* ended) noexcept;

  const process_stamp made_;
  std::shared_ptr<context_core> context_;
  worker_options options_;
  worker_lock lock_;
  ucx_worker ucx_;
  std::random_device entropy_;
  const std::uint64_t identity_;
  detail::staging_shelf staging_;
  part_table<worker_core> shared_parts_;
  device_copiers copiers_;
  round_agenda agenda_;  // before the parts, which keep it
  std::unique_ptr<worker_parts> parts_;
  // Found in the parts without a call; the code that uses these knows more of them.
  connection_table& connections_;
  frame_sender& sender_;
  message_exchange& messages_;
  region_service& service_;
  class control_server* control_server_ = nullptr;
  bool is_without_handle_ = false;
  bool is_left_ = false;  // to a borrowed worker of UCX's, until that has called back

  outstanding_operations outstanding_;
  handler_queue handlers_;
  scheduled_calls calls_{*this};
  round_work work_;
  tick_clock tick_clock_;
  const clock::duration watch_step_;  // within which a heartbeat begins to watch
  unsigned busy_rounds_ = 0;
  clock::time_point next_look_ = clock::time_point::min();  // of look_now_and_then()
  bool socket_closed_ = false;                              // since UCX's last round
  progress_leadership leadership_;
  std::unique_ptr<progress_thread> thread_;
};

template <class Condition>
bool worker_core::wait_until(clock::time_point until, Condition condition) {
  idle_rounds idle;
  const std::shared_ptr<worker_core> kept = weak_from_this().lock();  // a handler may drop it
  progress_leader leader(*this);
  for (bool has_driven = false;; has_driven = true) {
    const std::uint32_t seen = wakes();
    {
      const std::lock_guard guard(lock_);
      if (condition()) return true;
    }
    if ((has_driven && api().now() >= until) || is_inherited()) return false;
    progress_or_rest(idle, until, leader, seen);
  }
}

}  // namespace ucx::detail
