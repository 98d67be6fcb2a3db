#include "detail/worker_core.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "detail/connection_table.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/message_router.hpp"
#include "detail/operation_pools.hpp"
#include "detail/progress_thread.hpp"
#include "detail/resource_error.hpp"
#include "detail/status.hpp"

namespace ucx::detail {
namespace {

/// Reading the clock costs as much as a round that finds nothing, so it is read every so many.
constexpr unsigned rounds_per_clock = 64;

/// The workers whose handlers this thread is inside of, innermost first.
struct handler_frame {
  const worker_core* worker;
  const handler_frame* outer;
};
thread_local const handler_frame* innermost_handler = nullptr;

}  // namespace

/// Marks that handlers of `worker` run on this thread.
struct worker_core::handler_scope {
  explicit handler_scope(const worker_core& worker) noexcept : frame{&worker, innermost_handler} {
    innermost_handler = &frame;
  }
  ~handler_scope() { innermost_handler = frame.outer; }
  handler_scope(const handler_scope&) = delete;
  handler_scope& operator=(const handler_scope&) = delete;
  handler_frame frame;
};

worker_core::worker_core(std::shared_ptr<context_core> context, const worker_options& options)
    : context_(std::move(context)),
      options_(options),
      random_(std::random_device{}()),
      pools_(std::make_unique<operation_pools>()),
      connections_(std::make_unique<connection_table>(*this)),
      router_(std::make_unique<message_router>(*this)),
      service_(*this),
      next_tick_(clock::time_point::max()) {}

std::shared_ptr<worker_core> worker_core::make(std::shared_ptr<context_core> context,
                                               const worker_options& options, std::string& what,
                                               std::error_code& ec) {
  // The last reference may go on the worker's own thread, which can not join itself.
  std::shared_ptr<worker_core> made(new worker_core(std::move(context), options),
                                    [](worker_core* last) { last->retire(); });
  made->open(what, ec);
  if (ec) return nullptr;
  made->context_->add_worker(made);
  return made;
}

void worker_core::open(std::string& what, std::error_code& ec) {
  const bool sleeps = options_.progress == progress_mode::sleeping_thread;
  if (sleeps && !context_->has(feature::wakeup)) {
    what = "making a worker that sleeps: its context was made without feature::wakeup";
    ec = errc::feature_disabled;
    return;
  }
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our lock is outside of every call, so UCX sees one thread at a time.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  const ucs_status_t created = api().worker_create(context_->handle(), &params, &handle_);
  if (created != UCS_OK) {
    handle_ = nullptr;
    what = "making a worker (UCX: " + words(created) + ")";
    ec = resource_error(created);
    return;
  }
  if (context_->has(feature::wakeup)) {
    const ucs_status_t status = api().worker_get_efd(handle_, &event_fd_);
    if (status != UCS_OK) {
      event_fd_ = -1;
      what = "asking for a worker's event descriptor (UCX: " + words(status) + ")";
      ec = resource_error(status);
      return;
    }
  }
  if (context_->has(feature::am)) {
    router_->open(ec);
    if (ec) {
      what = "registering the handler for messages";
      return;
    }
  }
  if (!sleeps && options_.progress != progress_mode::polling_thread) return;
  try {
    thread_ = std::make_unique<progress_thread>(*this);
    thread_->start();
  } catch (const std::system_error& failed) {
    thread_.reset();
    what = std::string("starting a worker's thread (") + failed.what() + ")";
    ec = errc::busy;
  }
}

void worker_core::retire() noexcept {
  if (thread_ != nullptr) {
    if (thread_->is_current()) return thread_->leave_with_worker();
    thread_->stop();
  }
  destroy();
}

void worker_core::destroy() noexcept { delete this; }

worker_core::~worker_core() {
  if (handle_ == nullptr) return;
  {
    const std::lock_guard guard(lock_);
    posted_.clear();
    has_posted_ = false;
    connections_->close();
    run_deferred();
    // A second round: what the first one left to do.
    progress_ucx();
    run_deferred();
  }
  deferred_.clear();
  api().worker_destroy(handle_);
  for (endpoint_core* buried : buried_) delete buried;
}

void worker_core::bury(endpoint_core& endpoint) { buried_.push_back(&endpoint); }

worker_address worker_core::address(std::error_code& ec) {
  const std::lock_guard guard(lock_);
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  const ucs_status_t status = api().worker_get_address(handle_, &bytes, &length);
  ec = make_error(status);
  if (ec) return {};
  worker_address made =
      worker_address::from_native({reinterpret_cast<const std::byte*>(bytes), length});
  api().worker_release_address(handle_, bytes);
  return made;
}

unsigned worker_core::progress_ucx() noexcept {
  const bool outer = std::exchange(inside_ucx_, true);
  const unsigned count = api().worker_progress(handle_);
  inside_ucx_ = outer;
  return count;
}

bool worker_core::round() {
  const std::lock_guard guard(lock_);
  const handler_scope scope(*this);
  bool active = progress_ucx() > 0;
  if (!ended_.empty() || !deferred_.empty() || has_posted_.load(std::memory_order_relaxed)) {
    active = run_deferred() || active;
  }
  if (active && rounds_since_clock_ < rounds_per_clock) {
    ++rounds_since_clock_;
  } else if (next_tick_ != clock::time_point::max()) {
    rounds_since_clock_ = 0;
    now_hint_ = api().now();
    if (now_hint_ >= next_tick_) {
      tick(now_hint_);
      active = true;  // it may have ended what the caller waits for
    }
  }
  if (active) wake_waiters();
  return active;
}

bool worker_core::in_handler() const noexcept {
  for (const handler_frame* frame = innermost_handler; frame != nullptr; frame = frame->outer) {
    if (frame->worker == this) return true;
  }
  return false;
}

void worker_core::settle() {
  if (in_handler() || driven_elsewhere()) return;
  const std::lock_guard guard(lock_);
  const handler_scope scope(*this);
  run_deferred();
}

bool worker_core::progress() { return driven_elsewhere() ? false : round(); }

bool worker_core::run_deferred() {
  bool active = false;
  // What runs here may start operations and leave further work; that waits for the next round, but
  // for destruction, which the destructor repeats.
  if (has_posted_.exchange(false, std::memory_order_acquire)) {
    const std::lock_guard guard(posted_mutex_);
    for (move_only_handler<>& function : posted_) deferred_.push_back(std::move(function));
    posted_.clear();
  }
  if (!ended_.empty()) {
    active = true;
    std::vector<operation*> batch = std::exchange(ended_, {});
    for (operation* ended : batch) {
      ended->run_handler();
      ended->release();
    }
    batch.clear();
    if (ended_.empty()) ended_ = std::move(batch);
  }
  if (!deferred_.empty()) {
    active = true;
    std::vector<move_only_handler<>> batch = std::exchange(deferred_, {});
    for (move_only_handler<>& work : batch) work();
    batch.clear();
    if (deferred_.empty()) deferred_ = std::move(batch);
    connections_->reap();
  }
  return active;
}

void worker_core::tick(clock::time_point now) {
  // Ends first: whatever they change is seen by the look at the connections.
  for (operation* op = outstanding_.front(); op != nullptr;) {
    operation* next = outstanding_.next(*op);
    if (op->deadline() <= now) {
      op->retain();
      op->give_up(errc::timed_out);
      // Giving up may fail a connection and with it any operation, `next` among them.
      next = outstanding_.front();
      op->release();
    }
    op = next;
  }
  next_tick_ = connections_->tick(now);
  for (operation* op = outstanding_.front(); op != nullptr; op = outstanding_.next(*op)) {
    next_tick_ = std::min(next_tick_, op->deadline());
  }
  // Something may be past its deadline for good reason (UCX has to let go first): no busy loop.
  next_tick_ = std::max(next_tick_, now + std::chrono::milliseconds(1));
  connections_->reap();
}

void worker_core::add_outstanding(operation& started) noexcept {
  outstanding_.push_back(started);
  // Of the connection's heartbeat, too: its first look comes half an interval after the start.
  tick_by(std::min(started.deadline(), now_hint_ + options_.heartbeat_interval / 2));
}

void worker_core::tick_by(clock::time_point when) noexcept {
  if (when >= next_tick_) return;
  next_tick_ = when;
  // Its thread may be asleep until what was the first deadline so far.
  if (options_.progress == progress_mode::sleeping_thread && driven_elsewhere()) signal();
}

void worker_core::fail_outstanding_of(const endpoint_core& connection,
                                      std::error_code why) noexcept {
  for (operation* op = outstanding_.front(); op != nullptr;) {
    operation* next = outstanding_.next(*op);
    if (op->endpoint() == &connection) op->connection_failed(why);
    op = next;
  }
}

void worker_core::queue_handler(operation& ended) noexcept {
  ended.retain();
  ended_.push_back(&ended);
  if (thread_ != nullptr && !in_handler()) signal();
}

void worker_core::defer(move_only_handler<> work) { deferred_.push_back(std::move(work)); }

clock::time_point worker_core::deadline_after(std::chrono::nanoseconds timeout) noexcept {
  if (timeout <= timeout.zero()) timeout = options_.operation_timeout;
  now_hint_ = api().now();
  if (timeout > clock::time_point::max() - now_hint_) return clock::time_point::max();
  return now_hint_ + timeout;
}

void worker_core::post(move_only_handler<> function) {
  {
    const std::lock_guard guard(posted_mutex_);
    posted_.push_back(std::move(function));
    has_posted_.store(true, std::memory_order_release);
  }
  signal();
}

}  // namespace ucx::detail
