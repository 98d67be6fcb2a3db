#include "worker/worker_core.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/deadline.hpp"
#include "base/heartbeat.hpp"
#include "base/retirement.hpp"
#include "wire/introduction.hpp"
#include "worker/driven_connection.hpp"
#include "worker/driven_tasks.hpp"
#include "worker/progress_thread.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {
namespace {

/// While UCX is busy, deadlines are looked at in one round of so many.
constexpr unsigned rounds_a_look = 8;

/// Within this the end of a peer shows where the caller's own calls are all that looks for it.
constexpr std::chrono::milliseconds time_between_looks{10};

/// Of what handlers leave that may be the last. One that always leaves another is given up.
constexpr int most_last_runs = 100;

/// A duration of zero means the default.
void set_default(std::chrono::nanoseconds& chosen, std::chrono::nanoseconds usual) noexcept {
  if (chosen <= chosen.zero()) chosen = usual;
}

/// Returns a share; none, where the last one has gone. A weak one would be counted, too.
std::shared_ptr<worker_core> share_of(worker_core& worker) noexcept {
  try {
    return worker.shared_from_this();
  } catch (const std::bad_weak_ptr&) {
    return {};
  }
}

/// Work for which memory is short waits for a round, or goes with the worker.
template <class Work>
void as_memory_allows(Work work) noexcept {
  try {
    work();
  } catch (const std::bad_alloc&) {  // left
  }
}

worker_options with_defaults(worker_options options) noexcept {
  const worker_options usual;
  if (options.progress == progress_mode::automatic) options.progress = progress_mode::caller;
  if (options.thread_mode == thread_mode::automatic) options.thread_mode = thread_mode::single;
  set_default(options.spin, usual.spin);
  set_default(options.connect_timeout, usual.connect_timeout);
  set_default(options.operation_timeout, usual.operation_timeout);
  set_default(options.close_timeout, usual.close_timeout);
  set_default(options.heartbeat_interval, usual.heartbeat_interval);
  set_default(options.heartbeat_timeout, usual.heartbeat_timeout);
  if (options.message_window == 0) options.message_window = usual.message_window;
  if (options.untaken_messages == 0) options.untaken_messages = usual.untaken_messages;
  if (options.pinned_memory == 0) options.pinned_memory = usual.pinned_memory;
  return options;
}

/// Returns whether the worker is used by one thread; others only withdraw regions.
bool has_visitors_only(const worker_options& options) noexcept {
  const bool has_thread = options.progress == progress_mode::polling_thread ||
                          options.progress == progress_mode::sleeping_thread;
  return !has_thread && options.thread_mode == thread_mode::single;
}

}  // namespace

worker_core::worker_core(std::shared_ptr<context_core> context, make_parts parts,
                         const worker_options& options)
    : context_(std::move(context)),
      options_(with_defaults(options)),
      lock_(has_visitors_only(options_) ? worker_lock::between::visitors
                                        : worker_lock::between::threads),
      ucx_(*context_),
      identity_(random()),
      staging_(options_.pinned_memory, context_->answer_piece(), context_->write_piece()),
      parts_(parts(*this)),
      connections_(parts_->connections()),
      sender_(parts_->sender()),
      messages_(parts_->messages()),
      service_(parts_->service()),
      handlers_(options_.on_exception),
      work_(*this, agenda_),
      tick_clock_(context_->api()),
      watch_step_(heartbeat::step(options_.heartbeat_interval, options_.heartbeat_timeout)) {
  handlers_.make_room();
}

result<std::shared_ptr<worker_core>> worker_core::make(std::shared_ptr<context_core> context,
                                                       make_parts parts,
                                                       const worker_options& options) {
  // The last reference may go on the worker's own thread, which can not join itself.
  std::shared_ptr<worker_core> made(new worker_core(std::move(context), parts, options),
                                    retirement());
  if (const auto opened = made->open(); !opened) return opened.why();
  made->context_->workers().add(made);
  return made;
}

result<std::shared_ptr<worker_core>> worker_core::adopt(std::shared_ptr<context_core> context,
                                                        ucp_worker_h adopted, ownership owner,
                                                        make_parts parts,
                                                        const worker_options& options) {
  if (!context) return failure{errc::closed, "adopting a worker of UCX's"};
  if (adopted == nullptr) return failure{errc::invalid_argument, "adopting a worker of UCX's"};
  std::shared_ptr<worker_core> made(new worker_core(std::move(context), parts, options),
                                    retirement());
  made->ucx_.adopt(adopted, owner);
  const auto give_back = [&]() noexcept {
    made->parts_->leave();
    made->ucx_.give_back();
  };
  try {
    if (const auto opened = made->open(); !opened) {
      give_back();
      return opened.why();
    }
  } catch (...) {
    give_back();
    throw;
  }
  made->context_->workers().add(made);
  return made;
}

result<void> worker_core::open() {
  if (context_->is_inherited()) return failure{errc::forked_child, "making a worker"};
  if (options_.name.size() > introduction::most_name) {
    return failure{errc::invalid_argument, "making a worker: its name is too long"};
  }
  const std::error_code ec = complaint_about(options_.terms, context_->features());
  if (ec) return failure{ec, std::string("making a worker: ") + words_about_terms(ec)};
  const bool sleeps = options_.progress == progress_mode::sleeping_thread;
  if (sleeps && !context_->has(feature::wakeup)) {
    return failure{errc::feature_disabled,
                   "making a worker that sleeps: its context was made without feature::wakeup"};
  }
  const bool has_thread = sleeps || options_.progress == progress_mode::polling_thread;
  if (handle() == nullptr) {
    if (auto created = ucx_.create(options_.name); !created) return created;
  } else if (auto claimed = ucx_.claim(); !claimed) {
    return claimed;
  }
  if (auto looked = ucx_.look_at(has_thread || is_shared()); !looked) return looked;
  if (context_->has(feature::am)) {
    if (auto opened = parts_->open(); !opened) return opened;
  }
  return has_thread ? start_thread() : result<void>();
}

result<void> worker_core::start_thread() {
  try {
    thread_ = std::make_unique<progress_thread>(*this);
    thread_->start();
  } catch (const std::system_error& failed) {
    thread_.reset();
    return failure{errc::busy, std::string("starting a worker's thread (") + failed.what() + ")"};
  }
  return {};
}

void worker_core::retire() noexcept {
  if (is_inherited()) return;  // the parent's
  if (thread_ != nullptr) {
    if (thread_->is_current()) return thread_->leave_with_worker();
    thread_->stop();
  }
  destroy();
}

/// Where a borrowed worker of UCX's has requests, it is left until they have ended.
void worker_core::destroy() noexcept {
  if (handle() == nullptr) {
    delete this;
  } else if (end()) {
    finish();
  }
}

/// Returns whether UCX calls back for nothing any more, but for its end.
bool worker_core::end() noexcept {
  work_.drop_handed();
  {
    call_schedule::ended unused;  // goes behind the lock
    const std::lock_guard guard(lock_);
    unused = calls_.end();
    parts_->close();
  }
  // Twice: the first time leaves something to do, too.
  for (int i = 0; i < 2; ++i) {
    {
      const std::lock_guard guard(lock_);
      as_memory_allows([this] { run_work(); });
      progress_ucx();
      as_memory_allows([this] { run_work(); });
    }
    const worker_round scope(*this);
    std::unique_lock guard(lock_);
    run_handlers(guard, nullptr);
  }
  work_.drop();
  parts_->stop();
  return !ucx_.is_borrowed() || leave();
}

void worker_core::finish() noexcept {
  {
    // UCX calls back for what it still had.
    std::unique_lock guard(lock_);
    ucx_.destroy();
    handlers_.drop(guard);
  }
  parts_->destroy_all_deferred();
  delete this;
}

/// UCX's worker stays. Returns whether it calls back for nothing of this one's any more.
bool worker_core::leave() noexcept {
  const clock::time_point until = after(api().now(), options_.close_timeout);
  const std::lock_guard guard(lock_);
  parts_->leave();
  ucx_.let_go();
  while (parts_->has_deferred()) {
    if (api().now() >= until) {
      context_->log().write(log_level::warning,
                            "a borrowed worker of UCX's keeps requests of this library's: they "
                            "are left to it, with their memory");
      is_left_ = true;
      return false;
    }
    if (progress_ucx() == 0) api().relax();
    parts_->destroy_deferred();
  }
  return true;
}

result<worker_address> worker_core::address() {
  const std::lock_guard guard(lock_);
  return ucx_.address();
}

result<worker_attributes> worker_core::attributes() {
  const std::lock_guard guard(lock_);
  return ucx_.attributes();
}

staging_statistics worker_core::staging() const noexcept { return staging_.account().statistics(); }

unsigned worker_core::progress_ucx() noexcept {
  const worker_round scope(*this, worker_round::part::ucx);
  socket_closed_ = false;
  return ucx_.progress();
}

bool worker_core::run_work() { return work_.run(*this, *parts_, handlers_); }

bool worker_core::round() {
  // Users' code may drop it. The worker's own thread holds no share: a thread that drops the last
  // one waits for it.
  std::shared_ptr<worker_core> kept;
  const auto keep = [&] {
    if (!kept && thread_ == nullptr) kept = share_of(*this);
  };
  worker_round scope(*this);
  if (calls_.has(progress_phase::before)) {
    keep();
    calls_.run(progress_phase::before, handlers_);
  }
  bool active = false;
  bool memory_was_short = false;
  {
    std::unique_lock guard(lock_);
    scope.enter(worker_round::part::ucx);
    socket_closed_ = false;
    active = ucx_.progress() > 0;
    scope.enter(worker_round::part::any);
    // The clock and the handlers are looked at all the same.
    if (work_.has_any()) {
      try {
        active = run_work() || active;
      } catch (const std::bad_alloc&) {
        memory_was_short = true;
      }
    }
    if (agenda_.copies) {
      parts_->copy();
      active = true;
    }
    if (!active || ++busy_rounds_ % rounds_a_look == 0) active = look_at_clock() || active;
    if (socket_closed_) active = progress_ucx() > 0 || active;
    if (handlers_.due()) {
      keep();
      active = run_handlers(guard, kept) || active;
    }
  }
  if (calls_.has(progress_phase::after)) {
    keep();
    calls_.run(progress_phase::after, handlers_);
  }
  if (active) wake_waiters();
  if (memory_was_short) throw std::bad_alloc();
  return active;
}

/// Returns whether there was something to see to.
bool worker_core::look_at_clock() {
  if (!tick_clock_.take_due()) return false;
  tick(tick_clock_.last_look());
  return true;  // it may have ended what the caller waits for
}

bool worker_core::in_handler() const noexcept { return worker_round::is_made_of(*this); }

void worker_core::called_back() noexcept {
  if (!is_left_ || inside_ucx()) return;
  {
    const std::lock_guard guard(lock_);
    parts_->destroy_deferred();
    if (parts_->has_deferred()) return;
  }
  finish();
}

bool worker_core::inside_ucx() const noexcept { return worker_round::is_inside_ucx(*this); }

void worker_core::settle() noexcept {
  if (in_handler() || driven_elsewhere() || is_inherited()) return;
  const std::shared_ptr<worker_core> kept = weak_from_this().lock();  // a handler may drop it
  {
    const worker_round scope(*this);
    std::unique_lock guard(lock_);
    as_memory_allows([this] { run_work(); });
    // They may have brought about what another thread waits for.
    if (run_handlers(guard, kept)) wake_waiters();
  }
  const std::lock_guard guard(lock_);
  if (has_work()) wake_driver();
}

void worker_core::handle_gone() noexcept {
  if (driven_elsewhere() || is_inherited()) return;
  {
    const std::lock_guard guard(lock_);
    is_without_handle_ = true;
  }
  settle();
}

bool worker_core::progress() {
  if (driven_elsewhere() || is_inherited()) return false;
  if (!in_handler()) lock_.let_others_in();
  return round();
}

bool worker_core::look() noexcept {
  if (driven_elsewhere() || is_inherited()) return false;
  bool active = false;
  {
    const worker_round scope(*this);
    const std::lock_guard guard(lock_);
    active = progress_ucx() > 0;
    as_memory_allows([&] { active = run_work() || active; });
  }
  if (!active) return false;
  signal();  // the thread that drives may sleep, and has handlers to call
  wake_waiters();
  return true;
}

void worker_core::look_now_and_then() noexcept {
  const clock::time_point now = api().now_or_soon();
  if (now < next_look_ || in_handler()) return;
  next_look_ = now + time_between_looks;
  look();
}

bool worker_core::has_work() const noexcept {
  return work_.has_any() || handlers_.ready() || calls_.wants_round() || agenda_.copies;
}

// Code in run_work() and here may start operations and leave further work. That waits for the next
// round, but for destruction, which the destructor repeats.

/// REQUIRES: a round of this worker is being made.
bool worker_core::run_handlers(std::unique_lock<worker_lock>& guard,
                               const std::shared_ptr<worker_core>& kept) {
  // Where a caller further out holds it, the next round will do it.
  if (!lock_.is_outermost()) return false;
  if (!handlers_.run(guard, *parts_, kept)) return false;
  for (int i = 0; is_without_handle_ && i < most_last_runs; ++i) {
    as_memory_allows([this] { run_work(); });  // also the tasks that those have left
    if (!handlers_.run(guard, *parts_, kept)) break;
  }
  parts_->destroy_deferred();
  if (handlers_.take_left_over()) signal();
  return true;
}

void worker_core::tick(clock::time_point now) {
  // Ends first: whatever they change is seen by the look at the connections.
  outstanding_.expire(now);
  clock::time_point first = std::min(calls_.queue_due(now, handlers_), tasks()->tick(now));
  first = std::min(parts_->tick(now), first);
  tick_clock_.seen_to(std::min(outstanding_.first_deadline(), first));
  parts_->reap();
  parts_->destroy_deferred();
}

void worker_core::add_outstanding(operation& started) noexcept {
  outstanding_.add(started);
  // The connection's heartbeat begins to watch within a step.
  tick_by(std::min(started.deadline(), tick_clock_.last_look() + watch_step_));
  wake_driver();  // what is sent now may want UCX's progress
}

void worker_core::write_end(std::uint64_t sequence, const std::string& what,
                            const driven_connection* over, std::error_code outcome) {
  if (what.empty()) return;  // the library's own
  std::string line = "operation ";
  line.append(std::to_string(sequence)).append(": ").append(what);
  if (over != nullptr) line.append(", connection ").append(std::to_string(over->number()));
  line.append(": ").append(outcome ? outcome.message() : "done");
  context_->log().write(log_level::debug, line);
}

void worker_core::queue_handler(operation& ended) noexcept {
  handlers_.add(ended);
  wake_driver();
}

void worker_core::queue_handler(arrived_message& active) {
  handlers_.add(active);
  wake_driver();
}

void worker_core::queue_handler(move_only_handler<> function) {
  handlers_.add(std::move(function));
  wake_driver();
}

void worker_core::queue_expected_handler(move_only_handler<> function) noexcept {
  handlers_.add_expected(std::move(function));
  wake_driver();
}

void worker_core::defer(move_only_handler<> work) {
  work_.defer(std::move(work));
  wake_driver();
}

clock::time_point worker_core::deadline_after(std::chrono::nanoseconds timeout) noexcept {
  if (timeout <= timeout.zero()) timeout = options_.operation_timeout;
  return tick_clock_.deadline_after(timeout);
}

void worker_core::tick_by(clock::time_point when) noexcept {
  // It may be asleep until what was the first deadline so far.
  if (tick_clock_.tick_by(when)) wake_driver();
}

void worker_core::post(move_only_handler<> function) {
  work_.post(std::move(function));
  signal();
}

void worker_core::post_work(move_only_handler<> work) {
  work_.post_work(std::move(work));
  signal();
}

void worker_core::hand_over(std::shared_ptr<inbox_task> work) noexcept {
  work_.hand_over(std::move(work));
  signal();
}

void worker_core::connection_failed(const driven_connection& connection,
                                    std::error_code why) noexcept {
  outstanding_.fail(connection, why);
  parts_->connection_failed(connection);
}

void worker_core::report_thrown() noexcept {
  const worker_core* const worker = worker_round::worker();
  if (worker == nullptr) std::terminate();
  handler_queue::report_to(*worker->reporter(), std::current_exception());
}

std::uint64_t worker_core::random() { return (std::uint64_t{entropy_()} << 32U) | entropy_(); }

}  // namespace ucx::detail
