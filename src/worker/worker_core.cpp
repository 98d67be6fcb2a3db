#include "worker/worker_core.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "base/heartbeat.hpp"
#include "base/spare_room.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "wire/introduction.hpp"
#include "worker/driven_connection.hpp"
#include "worker/progress_thread.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {
namespace {

/// Deadlines that are further away may be a clock's tick late.
constexpr std::chrono::seconds near_deadline{1};

/// While UCX is busy, deadlines are looked at in one round of so many.
constexpr unsigned rounds_a_look = 8;

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

worker_options with_defaults(worker_options options) noexcept {
  const worker_options usual;
  if (options.progress == progress_mode::automatic) options.progress = progress_mode::caller;
  if (options.threads == thread_safety::automatic) options.threads = thread_safety::single;
  set_default(options.spin, usual.spin);
  set_default(options.connect_timeout, usual.connect_timeout);
  set_default(options.operation_timeout, usual.operation_timeout);
  set_default(options.close_timeout, usual.close_timeout);
  set_default(options.heartbeat_interval, usual.heartbeat_interval);
  set_default(options.heartbeat_timeout, usual.heartbeat_timeout);
  if (options.message_window == 0) options.message_window = usual.message_window;
  if (options.pinned_memory == 0) options.pinned_memory = usual.pinned_memory;
  return options;
}

/// Returns whether the worker is used by one thread; others only withdraw regions.
bool has_visitors_only(const worker_options& options) noexcept {
  const bool has_thread = options.progress == progress_mode::polling_thread ||
                          options.progress == progress_mode::sleeping_thread;
  return !has_thread && options.threads == thread_safety::single;
}

}  // namespace

worker_core::worker_core(std::shared_ptr<context_core> context, make_parts parts,
                         const worker_options& options)
    : context_(std::move(context)),
      options_(with_defaults(options)),
      lock_(has_visitors_only(options_) ? worker_lock::between::visitors
                                        : worker_lock::between::threads),
      identity_(random()),
      staging_(options_.pinned_memory, context_->answer_piece(), context_->write_piece()),
      parts_(parts(*this)),
      connections_(parts_->connections()),
      sender_(parts_->sender()),
      messages_(parts_->messages()),
      service_(parts_->service()),
      handlers_(options_.on_exception),
      next_tick_(clock::time_point::max()),
      watch_step_(heartbeat::step(options_.heartbeat_interval, options_.heartbeat_timeout)) {
  // From the beginning: inside UCX's callbacks it may be too late.
  deferred_.reserve(spare_room);
  next_deferred_.reserve(spare_room);
  handlers_.make_room();
}

result<std::shared_ptr<worker_core>> worker_core::make(std::shared_ptr<context_core> context,
                                                       make_parts parts,
                                                       const worker_options& options) {
  // The last reference may go on the worker's own thread, which can not join itself.
  std::shared_ptr<worker_core> made(new worker_core(std::move(context), parts, options),
                                    [](worker_core* last) { last->retire(); });
  if (const auto opened = made->open(); !opened) return opened.why();
  made->context_->add_worker(made);
  return made;
}

result<std::shared_ptr<worker_core>> worker_core::adopt(std::shared_ptr<context_core> context,
                                                        ucp_worker_h adopted, make_parts parts,
                                                        const worker_options& options) {
  if (!context) return failure{errc::closed, "adopting a worker of UCX's"};
  if (adopted == nullptr) return failure{errc::invalid_argument, "adopting a worker of UCX's"};
  std::shared_ptr<worker_core> made(new worker_core(std::move(context), parts, options),
                                    [](worker_core* last) { last->retire(); });
  made->handle_ = adopted;
  if (const auto opened = made->open(); !opened) {
    made->handle_ = nullptr;  // the caller's again
    return opened.why();
  }
  made->context_->add_worker(made);
  return made;
}

result<void> worker_core::create() {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our lock is outside of every call, so UCX sees one thread at a time.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (!options_.name.empty()) {
    params.field_mask |= UCP_WORKER_PARAM_FIELD_NAME;
    params.name = options_.name.c_str();
  }
  const ucs_status_t created = api().worker_create(context_->handle(), &params, &handle_);
  if (created == UCS_OK) return {};
  handle_ = nullptr;
  failure why{worker_error(created, context_->resources()),
              "making a worker (UCX: " + words(created) + ")"};
  if (why.code == errc::no_shared_memory) {
    why.text += ": /dev/shm has " + std::to_string(free_shared_memory()) + " bytes free";
  }
  return why;
}

/// Of what was made elsewhere: ours can be called from any thread, one at a time.
result<void> worker_core::check_threads() {
  const bool threads = options_.progress == progress_mode::polling_thread ||
                       options_.progress == progress_mode::sleeping_thread || shared();
  if (!threads) return {};
  std::error_code ec;
  const bool single = context_->single_threaded() || attributes(ec).thread_mode == "single";
  if (ec) return failure{ec, "asking for a worker's attributes"};
  if (!single) return {};
  return failure{errc::not_supported, "adopting a worker whose thread mode allows only one thread"};
}

result<void> worker_core::open() {
  if (is_forked_child()) return failure{errc::forked_child, "making a worker"};
  if (options_.name.size() > introduction::most_name) {
    return failure{errc::invalid_argument, "making a worker: its name is too long"};
  }
  std::error_code ec = complaint_about(options_.terms, context_->features());
  if (ec) return failure{ec, std::string("making a worker: ") + words_about_terms(ec)};
  const bool sleeps = options_.progress == progress_mode::sleeping_thread;
  if (sleeps && !context_->has(feature::wakeup)) {
    return failure{errc::feature_disabled,
                   "making a worker that sleeps: its context was made without feature::wakeup"};
  }
  if (handle_ == nullptr) {
    if (auto created = create(); !created) return created;
  }
  if (auto checked = check_threads(); !checked) return checked;
  if (context_->has(feature::wakeup)) {
    const ucs_status_t status = api().worker_get_efd(handle_, &event_fd_);
    if (status != UCS_OK) {
      event_fd_ = -1;
      return failure{resource_error(status),
                     "asking for a worker's event descriptor (UCX: " + words(status) + ")"};
    }
  }
  if (context_->has(feature::am)) {
    parts_->open(ec);
    if (ec) return failure{ec, "registering the handler for messages"};
    largest_header_ = attributes(ec).largest_header;
    if (ec) return failure{ec, "asking for a worker's attributes"};
  }
  if (!sleeps && options_.progress != progress_mode::polling_thread) return {};
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
  if (is_forked_child()) return;  // the parent's
  if (thread_ != nullptr) {
    if (thread_->is_current()) return thread_->leave_with_worker();
    thread_->stop();
  }
  destroy();
}

void worker_core::destroy() noexcept { delete this; }

worker_core::~worker_core() {
  if (handle_ == nullptr) return;
  inbox_.drop();
  {
    call_schedule::ended unused;  // goes behind the lock
    const std::lock_guard guard(lock_);
    unused = schedule_.end();
    parts_->close();
  }
  const auto run_last_work = [this] {
    try {
      run_work();
    } catch (const std::bad_alloc&) {  // what there was no memory for goes with the worker
    }
  };
  // Twice: the first time leaves something to do, too.
  for (int i = 0; i < 2; ++i) {
    {
      const std::lock_guard guard(lock_);
      run_last_work();
      progress_ucx();
      run_last_work();
    }
    const worker_round scope(*this);
    std::unique_lock guard(lock_);
    run_handlers(guard, nullptr);
  }
  deferred_.clear();
  parts_->stop();
  {
    // UCX calls back for what it still had.
    const std::lock_guard guard(lock_);
    api().worker_destroy(handle_);
    handlers_.drop();
  }
  parts_->end_buried();
}

worker_address worker_core::address(std::error_code& ec) {
  const std::lock_guard guard(lock_);
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  const ucs_status_t status = api().worker_get_address(handle_, &bytes, &length);
  ec = make_error(status);
  if (ec) return {};
  const auto release = [this](ucp_address_t* told) { api().worker_release_address(handle_, told); };
  const std::unique_ptr<ucp_address_t, decltype(release)> owned(bytes, release);
  return worker_address::from_native({reinterpret_cast<const std::byte*>(bytes), length});
}

worker_attributes worker_core::attributes(std::error_code& ec) {
  const std::lock_guard guard(lock_);
  ucp_worker_attr_t asked = {};
  asked.field_mask = UCP_WORKER_ATTR_FIELD_NAME | UCP_WORKER_ATTR_FIELD_THREAD_MODE;
  if (context_->has(feature::am)) asked.field_mask |= UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  ec = make_error(api().worker_query(handle_, &asked));
  worker_attributes made;
  if (ec) return made;
  made.name = asked.name;
  made.thread_mode = thread_mode_name(asked.thread_mode);
  if (context_->has(feature::am)) made.largest_header = asked.max_am_header;
  return made;
}

staging_statistics worker_core::staging() const noexcept { return staging_.account().statistics(); }

unsigned worker_core::progress_ucx() noexcept {
  const worker_round scope(*this, worker_round::part::ucx);
  socket_closed_ = false;
  return api().worker_progress(handle_);
}

bool worker_core::has_work_to_run() const noexcept {
  return !deferred_.empty() || agenda_.owed || inbox_.has_any() ||
         buffers_came_.load(std::memory_order_acquire);
}

bool worker_core::round() {
  // Users' code may drop it. A thread of its own holds nothing: who drops it last waits for it.
  std::shared_ptr<worker_core> kept;
  const auto keep = [&] {
    if (!kept && thread_ == nullptr) kept = share_of(*this);
  };
  worker_round scope(*this);
  if (schedule_.has(progress_phase::before)) {
    keep();
    run_in_progress(progress_phase::before);
  }
  bool active = false;
  bool memory_was_short = false;
  {
    std::unique_lock guard(lock_);
    scope.enter(worker_round::part::ucx);
    socket_closed_ = false;
    active = api().worker_progress(handle_) > 0;
    scope.enter(worker_round::part::any);
    // The clock and the handlers are looked at all the same.
    if (has_work_to_run()) {
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
  if (schedule_.has(progress_phase::after)) {
    keep();
    run_in_progress(progress_phase::after);
  }
  if (active) wake_waiters();
  if (memory_was_short) throw std::bad_alloc();
  return active;
}

/// Returns whether there was something to see to.
bool worker_core::look_at_clock() {
  if (next_tick_ == clock::time_point::max()) return false;
  // The clock itself costs as much as a round that finds nothing.
  now_hint_ = api().now_or_soon();
  if (now_hint_ < next_tick_) return false;
  now_hint_ = api().now();
  if (now_hint_ < next_tick_) return false;
  tick(now_hint_);
  return true;  // it may have ended what the caller waits for
}

bool worker_core::in_handler() const noexcept { return worker_round::is_made_of(*this); }

bool worker_core::inside_ucx() const noexcept { return worker_round::is_inside_ucx(*this); }

void worker_core::settle() noexcept {
  if (in_handler() || driven_elsewhere() || is_forked_child()) return;
  const std::shared_ptr<worker_core> kept = weak_from_this().lock();  // a handler may drop it
  {
    const worker_round scope(*this);
    std::unique_lock guard(lock_);
    try {
      run_work();
    } catch (const std::bad_alloc&) {  // a round does what is left
    }
    run_handlers(guard, kept);
  }
  const std::lock_guard guard(lock_);
  if (has_work()) wake_driver();
}

bool worker_core::progress() {
  if (driven_elsewhere() || is_forked_child()) return false;
  if (!in_handler()) lock_.let_others_in();
  return round();
}

bool worker_core::has_work() const noexcept {
  return has_work_to_run() || handlers_.ready() || schedule_.wants_round() || agenda_.copies;
}

// What runs in run_work() and here may start operations and leave further work; that waits for the
// next round, but for destruction, which the destructor repeats.

/// REQUIRES: a round of this worker is being made.
bool worker_core::run_handlers(std::unique_lock<worker_lock>& guard,
                               const std::shared_ptr<worker_core>& kept) {
  // Where a caller of ours holds it, the next round will do it.
  if (!lock_.is_outermost()) return false;
  if (!handlers_.run(guard, *parts_, kept)) return false;
  parts_->release_buried();
  if (handlers_.take_left_over()) signal();
  return true;
}

void worker_core::tick(clock::time_point now) {
  // Ends first: whatever they change is seen by the look at the connections.
  outstanding_.expire(now);
  try {
    for (;;) {
      handlers_.make_room();  // what is taken out is not lost
      std::shared_ptr<scheduled> due = schedule_.take_due(now);
      if (!due) break;
      handlers_.add([this, due = std::move(due)] { run(*due); });
    }
  } catch (const std::bad_alloc&) {  // the next tick has what is left
  }
  next_tick_ = schedule_.next();
  next_tick_ = std::min(parts_->tick(now), next_tick_);
  next_tick_ = std::min(outstanding_.first_deadline(), next_tick_);
  // Something may be past its deadline for good reason (UCX has to let go first): no busy loop.
  next_tick_ = std::max(next_tick_, now + std::chrono::milliseconds(1));
  parts_->reap();
  parts_->release_buried();
}

void worker_core::add_outstanding(operation& started) noexcept {
  outstanding_.add(started);
  // The connection's heartbeat begins to watch within a step.
  tick_by(std::min(started.deadline(), now_hint_ + watch_step_));
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

void worker_core::defer(move_only_handler<> work) {
  add_with_room(deferred_, std::move(work));
  wake_driver();
}

clock::time_point worker_core::deadline_after(std::chrono::nanoseconds timeout) noexcept {
  if (timeout <= timeout.zero()) timeout = options_.operation_timeout;
  now_hint_ = timeout < near_deadline ? api().now() : api().now_or_soon();
  return after(now_hint_, timeout);
}

std::uint64_t worker_core::random() { return (std::uint64_t{entropy_()} << 32U) | entropy_(); }

}  // namespace ucx::detail
