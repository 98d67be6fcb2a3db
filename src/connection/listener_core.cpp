#include "connection/listener_core.hpp"

#include <unistd.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/meeting_book.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/pending_connection.hpp"
#include "ucp/resource_error.hpp"
#include "ucx/error.hpp"
#include "wire/introduction.hpp"
#include "worker/core_access.hpp"
#include "worker/handler_scope.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many peers at a time are told why they are refused: each takes a connection meanwhile.
constexpr unsigned most_refusals = 64;
/// UCX's thread takes microseconds for each peer whose request is not awaited any more.
constexpr std::chrono::seconds longest_wait_for_requests{1};

}  // namespace

accept_wait::accept_wait() = default;
accept_wait::~accept_wait() = default;

listener_core::listener_core(std::shared_ptr<worker_core> worker, listener_options options)
    : worker_(std::move(worker)), options_(std::move(options)) {}

result<std::shared_ptr<listener_core>> listener_core::make(std::shared_ptr<worker_core> worker,
                                                           const socket_address& address,
                                                           listener_options options) {
  const std::shared_ptr<meeting_book> keys = meeting_scope::take_book();
  const std::string doing = "listening on " + to_string(address);
  if (!worker) return failure{errc::closed, doing};
  if (worker->is_inherited()) return failure{errc::forked_child, doing};
  if (address.empty()) return failure{errc::bad_address, doing};
  std::error_code ec;
  if (options.terms) ec = complaint_about(*options.terms, worker->context().features());
  if (ec) return failure{ec, doing + ": " + words_about_terms(ec)};
  if (address.is_v6() && !worker->context().speaks_ipv6()) {
    return failure{errc::not_supported,
                   doing + no_ipv6 + "; a server at [::] serves both (ucx, ucx+tcp, ucxs)"};
  }
  const auto because = [&doing](const failure& why) {
    return failure{why.code, doing + (why.text.empty() ? "" : ": " + why.text), why.ucx_status};
  };
  auto place = listening_place::claim(*worker, address);
  if (!place) return because(place.why());
  std::shared_ptr<listener_core> made(new listener_core(std::move(worker), std::move(options)));
  made->listens_at_ = *std::move(place);
  ucp_api& api = made->worker_->api();
  const std::lock_guard guard(made->worker_->lock());
  if (api.is_ucx()) made->socket_.emplace(address);
  ucp_listener_params_t params = {};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = made->listens_at_.address.native();
  params.sockaddr.addrlen = made->listens_at_.address.native_size();
  params.conn_handler.cb = &listener_core::on_connection;
  params.conn_handler.arg = made.get();
  if (keys && !api.is_ucx()) give(params, *keys);
  const ucs_status_t status = api.listener_create(made->worker_->handle(), &params, &made->handle_);
  if (status != UCS_OK) {
    made->handle_ = nullptr;
    ec = status == UCS_ERR_BUSY ? make_error_code(errc::address_in_use) : resource_error(status);
    if (const auto known = carrier_failure_of(status)) ec = known->code;
    return failure{ec, doing + " (" + made->worker_->context().words_of(status) + ")",
                   made->worker_->context().ucx_status_of(status)};
  }
  auto own = made->listens_at_.bound(api, made->handle_);
  if (!own) return because(own.why());
  made->address_ = *own;
  if (made->socket_) {
    made->socket_->listens_at(made->address_);
    made->socket_->close_on_exec();
    made->guard_ports(made->socket_->keep_strangers_out());
  }
  made->owner_ = ::getpid();
  made->worker_->context().log().write(log_level::info,
                                       "listening on " + to_string(made->address_));
  return made;
}

/// Looks after the listening sockets, and those by which the worker's data come.
void listener_core::guard_ports(std::vector<guarded_port> own) {
  const std::weak_ptr<listener_core> weak = weak_from_this();
  // It ends before the listener does, and so before the worker.
  worker_core* const worker = worker_.get();
  ports_ = std::make_unique<listener_ports>(
      *worker, address_, std::move(own),
      listener_ports::listeners{[weak, worker](const guarded_port& port) {
                                  worker->post_work([weak, port] {
                                    if (const auto kept = weak.lock()) kept->lose(port);
                                  });
                                },
                                [weak, worker](std::vector<std::uint64_t> numbers) {
                                  worker->post_work([weak, numbers = std::move(numbers)]() mutable {
                                    if (const auto kept = weak.lock())
                                      kept->end_overdue(std::move(numbers));
                                  });
                                }});
}

/// Ends those who have begun a greeting and not completed it. A request that UCX has read reaches
/// the listener in the next round.
void listener_core::end_overdue(std::vector<std::uint64_t> overdue) {
  worker_->post_work([weak = weak_from_this(), overdue = std::move(overdue)] {
    const auto kept = weak.lock();
    if (kept && !kept->closed_) kept->socket_->end_unknown(overdue);
  });
}

void listener_core::lose(const guarded_port& port) {
  if (closed_) return;  // other workers may have ended before this one, and their ports with them
  worker_->context().port_is_lost();
  listener_failure lost{port.address, errc::too_many_files, {}};
  lost.error_message =
      "UCX has closed " + to_string(port.address) +
      ", for this process had no file descriptor left for who connected there: who is "
      "connected goes on, others can not connect any more. Start anew with a higher "
      "limit (ulimit -n)";
  // Several listeners of a worker look after one port for data.
  if (worker_->connections().note_lost_port(port.number)) {
    worker_->context().log().write(log_level::error, lost.error_message);
  }
  auto& handler = options_.on_failure;
  if (handler) queue([&handler, lost = std::move(lost)] { handler(lost); });
}

listener_core::~listener_core() {
  if (handle_ != nullptr) stop();
}

void listener_core::stop() noexcept {
  ports_.reset();
  const std::lock_guard guard(worker_->lock());
  closed_ = true;
  listens_at_.file.reset();
  if (handle_ != nullptr && socket_ && owner_ == ::getpid()) await_requests();
  while (!arrived_.empty()) {
    const ucp_conn_request_h request = arrived_.front();
    arrived_.pop_front();
    reject(request);
  }
  if (handle_ != nullptr) worker_->api().listener_destroy(std::exchange(handle_, nullptr));
}

/// Returns when no request is on its way: UCX would tell the listener of it.
void listener_core::await_requests() noexcept {
  ucp_api& api = worker_->api();
  const clock::time_point until = after(api.now(), longest_wait_for_requests);
  socket_->refuse();
  for (;;) {
    const bool waiting = socket_->has_waiting();
    await_asynchronous_thread();  // it may have let the last one in, and not finished
    const std::size_t left = socket_->end_unknown();
    if (!waiting && left == 0) break;
    if (api.now() >= until) {
      worker_->context().log().write(log_level::warning, if_there_is_memory([&] {
                                       return "closing the listener on " + to_string(address_) +
                                              " with " + std::to_string(left) +
                                              " peers that UCX has not let go of";
                                     }));
      break;
    }
    // A request that has been read is handed over by this, and refused.
    if (worker_->inside_ucx() || worker_->progress_ucx() == 0) api.relax();
  }
  worker_->signal();  // what these rounds left to do
}

/// Returns when UCX's thread has done what it was doing for this worker: a call that makes nothing
/// takes the lock that it has meanwhile.
void listener_core::await_asynchronous_thread() noexcept {
  const ucp_ep_params_t nobody = {};
  ucp_ep_h none = nullptr;
  worker_->api().ep_create(worker_->handle(), &nobody, &none);
}

void listener_core::reject(ucp_conn_request_h request) noexcept {
  const std::lock_guard guard(worker_->lock());
  if (handle_ == nullptr) return;
  worker_->api().listener_reject(handle_, request);
  worker_->socket_closed();
  worker_->signal();  // who drives it may sleep
}

void listener_core::close() noexcept {
  std::unique_ptr<listener_ports> ended;
  {
    const std::lock_guard guard(worker_->lock());
    closed_ = true;
    listens_at_.file.reset();  // no new client finds what does not answer
    ended = std::move(ports_);
    while (!waits_.empty()) {
      const std::shared_ptr<accept_wait> wait = std::move(waits_.front());
      waits_.pop_front();
      wait->why = errc::closed;
      end(wait);
    }
  }
  ended.reset();  // waits for its thread, which the lock might keep
  // What the handlers refer to may go when this returns.
  if (worker_->in_handler()) return;
  worker_->wait_until(clock::time_point::max(), [this] { return calling_ == 0; });
}

void listener_core::close_and_stop() noexcept {
  close();
  // Not by the last owner's end: the worker's thread may be one for a moment, and would be late.
  const std::lock_guard guard(worker_->lock());
  if (handle_ != nullptr && pending_ == 0 && !worker_->inside_ucx()) stop();
}

void listener_core::close_connections(close_mode mode) noexcept {
  std::vector<close_operation*> closing;
  try {
    const std::lock_guard guard(worker_->lock());
    const auto open = worker_->connections().followed_by(*this);
    closing.reserve(open.size());
    for (const std::shared_ptr<endpoint_core>& each : open) {
      if (worker_->in_handler()) break;
      if (close_operation* const started = each->closing().start(mode)) closing.push_back(started);
    }
  } catch (const std::bad_alloc&) {  // those end at once
  }
  for (close_operation* const each : closing) {
    worker_->wait(*each, clock::time_point::max());
    each->drop();
  }
  for (;;) {
    std::shared_ptr<endpoint_core> left;
    {
      const std::lock_guard guard(worker_->lock());
      left = worker_->connections().any_followed_by(*this);
    }
    if (!left) return;
    left->closing().close(close_mode::abort);
  }
}

const connection_terms& listener_core::terms() const noexcept {
  return options_.terms ? *options_.terms : worker_->options().terms;
}

std::size_t listener_core::connections() const noexcept {
  const std::lock_guard guard(worker_->lock());
  return worker_->connections().active(this);
}

bool listener_core::begin_refusal() noexcept {
  if (refusals_ >= most_refusals) return false;
  ++refusals_;
  return true;
}

void listener_core::on_connection(ucp_conn_request_h request, void* self) {
  // Inside UCX's callback: endpoints are made, and handlers run, when it has returned. The worker
  // does not own the listener meanwhile: it might never come to make another round.
  auto& listener = *static_cast<listener_core*>(self);
  const ucx_callback scope(*listener.worker_);
  if (listener.closed_) return listener.reject(request);
  if (listener.arrived_.size() >= listener.options_.backlog) return listener.reject(request);
  if (listener.socket_ &&
      !listener.socket_->add_known(pending_connection::peer_of(listener.worker_->api(), request))) {
    return listener.reject(request);  // UCX would read an address that is not there
  }
  try {
    if (lacks_memory_to_connect()) {
      listener.worker_->context().log().write(
          log_level::error,
          "a peer is turned away, for want of memory for its connection; see the limits of this "
          "process (ulimit -v, ulimit -d)");
      return listener.reject(request);
    }
    listener.arrived(request);
  } catch (const std::bad_alloc&) {
    listener.reject(request);
  }
}

/// Has somebody decide about it, soon; where there is no memory for that, nothing has happened.
void listener_core::arrived(ucp_conn_request_h request) {
  arrived_.push_back(request);
  try {
    auto later = [weak = weak_from_this()] {
      if (const auto kept = weak.lock()) kept->decide();
    };
    if (options_.on_request) {
      worker_->queue_handler(std::move(later));
    } else {
      worker_->defer(std::move(later));
    }
  } catch (const std::bad_alloc&) {
    arrived_.pop_back();
    throw;
  }
}

/// Decides about the next in line: by itself under the lock, or without it by the user's handler.
void listener_core::decide() {
  if (options_.on_request) return call();
  if (options_.manual_accept) return match();
  std::unique_ptr<pending_connection> pending = take();
  if (!pending) return;
  if (const auto other = next_worker()) return hand_over(*other, std::move(pending));
  auto peer = pending->accept(*worker_, nullptr, endpoint_options());
  if (peer) return worker_->connections().served().serve(*std::move(peer));
  pending->tell_of_failure(*worker_, peer.why());
}

void listener_core::spread_over(std::vector<std::weak_ptr<worker_core>> others) {
  if (ports_) ports_->add(others);
  const std::lock_guard guard(worker_->lock());
  others_ = std::move(others);
}

/// Returns the worker whose turn it is; null, when it is the listener's own.
std::shared_ptr<worker_core> listener_core::next_worker() noexcept {
  const std::size_t turn = turn_;
  turn_ = (turn_ + 1) % (others_.size() + 1);
  return turn == 0 ? nullptr : others_[turn - 1].lock();
}

/// UCX makes endpoints of another worker than its listener's out of a request. That one is locked
/// when this one is not.
void listener_core::hand_over(worker_core& other, std::unique_ptr<pending_connection> pending) {
  other.post_work([&other, pending = std::move(pending)] {
    auto peer = pending->accept_elsewhere(other);
    if (peer) return other.connections().served().serve(*std::move(peer));
    pending->tell_of_failure(other, peer.why());
  });
}

void listener_core::call() {
  std::unique_lock guard(worker_->lock());
  std::unique_ptr<pending_connection> pending = take();
  if (!pending) return;
  const handler_scope calling(*worker_, guard, calling_);
  options_.on_request(core_access::make_connection_request(std::move(pending)));
}

/// Makes `call`, which calls one of the user's handlers, without the lock.
template <class Call>
void listener_core::queue(Call call) {
  worker_->queue_handler([weak = weak_from_this(), call = std::move(call)]() mutable {
    const std::shared_ptr<listener_core> kept = weak.lock();
    if (!kept) return;
    std::unique_lock guard(kept->worker_->lock());
    if (kept->closed_) return;
    const handler_scope calling(*kept->worker_, guard, kept->calling_);
    call();
  });
}

void listener_core::established(endpoint_core& connection) {
  if (!options_.events.on_established) return;
  // The handle's memory is taken here: its want can be told. It can not when the handler is due.
  queue([this, peer = connection.weak_from_this(), both = std::make_shared<core_access::served>(),
         report = connection.report()]() mutable {
    options_.events.on_established(
        core_access::make_served_endpoint(std::move(both), worker_, peer.lock()), report);
  });
}

void listener_core::ended(endpoint_core& connection, bool was_established) {
  if (connection.session().refuses_hello()) return end_refusal();
  const std::error_code why = connection.failure();
  if (!why || why == errc::canceled) return;  // closed on this side
  auto& handler = was_established ? options_.events.on_closed : options_.events.on_refused;
  if (handler) queue([&handler, end = connection.end()] { handler(end); });
}

std::shared_ptr<accept_wait> listener_core::add_wait() {
  auto wait = std::make_shared<accept_wait>();
  const std::lock_guard guard(worker_->lock());
  waits_.push_back(wait);
  if (closed_ || !options_.manual_accept || options_.on_request) {
    waits_.pop_back();
    wait->why = closed_ ? errc::closed : errc::invalid_argument;
    wait->over = true;
  }
  match();
  return wait;
}

/// Gives those who wait those who came.
void listener_core::match() noexcept {
  while (!waits_.empty() && !arrived_.empty()) {
    std::unique_ptr<pending_connection> came = take();
    if (!came) continue;
    const std::shared_ptr<accept_wait> first = std::move(waits_.front());
    waits_.pop_front();
    first->came = std::move(came);
    end(first);
  }
}

void listener_core::end(const std::shared_ptr<accept_wait>& wait) noexcept {
  wait->over = true;
  worker_->wake_waiters();
  if (!wait->coroutine) return;
  // It fits into a handler as it is.
  worker_->queue_expected_handler([wait, worker = worker_.get()] {
    std::unique_lock guard(worker->lock());
    const std::coroutine_handle<> coroutine = std::exchange(wait->coroutine, {});
    guard.unlock();
    if (coroutine) coroutine.resume();
  });
}

void listener_core::remove_wait(accept_wait& wait) noexcept {
  const std::lock_guard guard(worker_->lock());
  if (std::exchange(wait.coroutine, {}) && !wait.over) worker_->forgo_handler();
  wait.came.reset();
  std::erase_if(waits_, [&](const auto& each) { return each.get() == &wait; });
  // Its own call may wait for it still, where a handler destroys it.
  if (!wait.why) wait.why = errc::canceled;
  if (!std::exchange(wait.over, true)) worker_->wake_waiters();
}

bool listener_core::is_over(const accept_wait& wait) const noexcept {
  const std::lock_guard guard(worker_->lock());
  return wait.over;
}

void listener_core::resume_at_end(const std::shared_ptr<accept_wait>& wait,
                                  std::coroutine_handle<> coroutine) {
  const std::lock_guard guard(worker_->lock());
  worker_->expect_handler();
  wait->coroutine = coroutine;
  if (wait->over) end(wait);  // between the two questions
}

result<connection_request> listener_core::await(accept_wait& wait,
                                                std::chrono::nanoseconds timeout) {
  if (!is_over(wait)) {
    if (worker_->in_handler()) return failure{errc::would_deadlock};
    std::unique_lock guard(worker_->lock());
    const clock::time_point until = worker_->deadline_after(timeout);
    guard.unlock();
    worker_->wait_until(until, [&] { return wait.over; });
  }
  const std::lock_guard guard(worker_->lock());
  if (!wait.over) return failure{errc::timed_out};
  if (wait.why) return failure{wait.why};
  return core_access::make_connection_request(std::move(wait.came));
}

/// Returns the next in line; nothing when the listener is closed, or there is no memory for it: who
/// came is rejected then.
std::unique_ptr<pending_connection> listener_core::take() noexcept {
  if (arrived_.empty()) return nullptr;
  const ucp_conn_request_h request = arrived_.front();
  arrived_.pop_front();
  try {
    auto pending = std::make_unique<pending_connection>(shared_from_this(), request);
    return closed_ ? nullptr : std::move(pending);
  } catch (const std::bad_alloc&) {
    reject(request);
    return nullptr;
  }
}

}  // namespace ucx::detail
