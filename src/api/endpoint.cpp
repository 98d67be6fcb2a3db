#include "ucx/endpoint.hpp"

#include <memory>
#include <utility>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/connector.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/listener_core.hpp"
#include "connection/misplaced_option.hpp"
#include "connection/pending_connection.hpp"
#include "ucx/error.hpp"
#include "wire/introduction.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::connected_by;
using detail::core_access;
using detail::endpoint_core;
using detail::worker_core;
using role = endpoint_core::role;

std::shared_ptr<worker_core> usable(const worker& parent, std::error_code& ec) {
  std::shared_ptr<worker_core> core = core_access::core(parent);
  ec = core ? std::error_code() : make_error_code(errc::closed);
  if (core && detail::is_forked_child()) ec = errc::forked_child;
  return core;
}

detail::clock::time_point connect_deadline(worker_core& worker, std::chrono::nanoseconds timeout) {
  if (timeout <= timeout.zero()) timeout = worker.options().connect_timeout;
  return detail::after(worker.api().now(), timeout);
}

/// Returns the core of `parent`, if it can be used and the options are for this way to connect; or
/// says why not, in `words` where there are any.
std::shared_ptr<worker_core> usable(const worker& parent, const endpoint_options& options,
                                    connected_by way, std::string& words, std::error_code& ec) {
  std::shared_ptr<worker_core> core = usable(parent, ec);
  const char* const misplaced = detail::misplaced_option(options, way);
  if (ec || misplaced == nullptr) return core;
  words = misplaced;
  ec = errc::invalid_argument;
  return nullptr;
}

std::shared_ptr<endpoint_core> connect(const worker& parent, const worker_address& peer,
                                       endpoint_options options, std::string& words,
                                       std::error_code& ec) {
  const auto worker = usable(parent, options, connected_by::worker_address, words, ec);
  if (ec) return nullptr;
  const auto deadline = connect_deadline(*worker, options.connect_timeout);
  return detail::connect_to(worker, peer, std::move(options), deadline, ec);
}

std::shared_ptr<endpoint_core> connect(const worker& parent, const socket_address& peer,
                                       endpoint_options options, std::string& words,
                                       std::error_code& ec) {
  const auto worker = usable(parent, options, connected_by::socket_address, words, ec);
  if (ec) return nullptr;
  const auto deadline = connect_deadline(*worker, options.connect_timeout);
  if (options.wait == connect_wait::none) {
    return detail::connect_to(worker, peer, std::move(options), deadline, ec);
  }
  if (worker->in_handler()) {
    ec = errc::would_deadlock;
    return nullptr;
  }
  // Failures until here are told by the constructor alone.
  auto made = detail::connect_to(worker, peer, detail::without_handlers(options), deadline, ec);
  if (!made) return nullptr;
  made->wait_connected(ec);
  if (!ec) made->observers().arm(std::move(options));
  return made;
}

std::shared_ptr<endpoint_core> connect(const worker& parent, std::string_view host,
                                       std::uint16_t port, endpoint_options options,
                                       std::string& words, std::error_code& ec) {
  const auto worker = usable(parent, options, connected_by::name, words, ec);
  if (ec) return nullptr;
  if (worker->in_handler()) {
    ec = errc::would_deadlock;
    return nullptr;
  }
  if (host.empty()) {
    ec = errc::host_not_found;
    return nullptr;
  }
  detail::destination to;
  to.host = host;
  to.port = port;
  const auto deadline = connect_deadline(*worker, options.connect_timeout);
  const auto connecting = detail::connector::start(worker, std::move(to), options, deadline, {});
  worker->wait_until(detail::clock::time_point::max(), [&] { return connecting->done(); });
  std::shared_ptr<endpoint_core> made;
  {
    const std::lock_guard guard(worker->lock());
    ec = connecting->failure();
    words = connecting->words();
    made = connecting->take();
  }
  if (!ec) made->observers().arm(std::move(options));
  return made;
}

std::shared_ptr<endpoint_core> accept(const worker& parent, connection_request& request,
                                      endpoint_options options, std::string& words,
                                      std::error_code& ec) {
  const auto worker = usable(parent, options, connected_by::request, words, ec);
  if (ec) return nullptr;
  auto& pending = core_access::pending(request);
  if (!pending) {
    ec = errc::closed;
    return nullptr;
  }
  return pending->accept(*worker, worker, std::move(options), ec);
}

[[noreturn]] void fail(std::error_code ec, const std::string& what, const std::string& words) {
  throw error(ec, words.empty() ? what : what + " (" + words + ")");
}

[[noreturn]] void fail(std::error_code ec, const std::string& what,
                       const std::shared_ptr<endpoint_core>& core) {
  fail(ec, what, core ? core->words() : std::string());
}

/// The same of a connection that was not made, where nobody has said why yet. A peer may give the
/// same error as its reason, and says so itself.
[[noreturn]] void fail_to_make(std::error_code ec, const std::string& what, std::string words) {
  if (words.empty() && ec == errc::feature_disabled) words = detail::words_about_terms(ec);
  fail(ec, what, words);
}

}  // namespace

const char* to_string(connection_state state) noexcept {
  switch (state) {
    case connection_state::connecting:
      return "connecting";
    case connection_state::active:
      return "active";
    case connection_state::closing:
      return "closing";
    case connection_state::failed:
      return "failed";
    case connection_state::closed:
      return "closed";
  }
  return "unknown";
}

endpoint::endpoint(const worker& parent, const worker_address& peer, endpoint_options options) {
  std::error_code ec;
  std::string words;
  core_ = connect(parent, peer, std::move(options), words, ec);
  if (ec) fail_to_make(ec, "connecting by worker address", words);
}

endpoint::endpoint(const worker& parent, const worker_address& peer, endpoint_options options,
                   std::error_code& ec) {
  std::string words;
  core_ = connect(parent, peer, std::move(options), words, ec);
}

endpoint::endpoint(const worker& parent, const socket_address& peer, endpoint_options options) {
  std::error_code ec;
  std::string words;
  std::string what = "connecting to " + to_string(peer);  // a handler may end the listener it is of
  core_ = connect(parent, peer, std::move(options), words, ec);
  if (ec == errc::not_supported) what += detail::no_ipv6;
  if (ec && core_) fail(ec, what, core_);
  if (ec) fail_to_make(ec, what, words);
}

endpoint::endpoint(const worker& parent, const socket_address& peer, endpoint_options options,
                   std::error_code& ec) {
  std::string words;
  core_ = connect(parent, peer, std::move(options), words, ec);
  if (ec) core_.reset();
}

endpoint::endpoint(const worker& parent, std::string_view host, std::uint16_t port,
                   endpoint_options options) {
  std::error_code ec;
  std::string words;
  core_ = connect(parent, host, port, std::move(options), words, ec);
  if (!ec) return;
  std::string what = "connecting to ";
  what.append(detail::shown(host, 256)).append(":").append(std::to_string(port));
  fail_to_make(ec, what, words);
}

endpoint::endpoint(const worker& parent, std::string_view host, std::uint16_t port,
                   endpoint_options options, std::error_code& ec) {
  std::string words;
  core_ = connect(parent, host, port, std::move(options), words, ec);
}

endpoint::endpoint(const worker& parent, connection_request&& request, endpoint_options options) {
  std::error_code ec;
  std::string words;
  core_ = accept(parent, request, std::move(options), words, ec);
  if (ec) fail_to_make(ec, "accepting a connection from " + to_string(request.peer()), words);
}

endpoint::endpoint(const worker& parent, connection_request&& request, endpoint_options options,
                   std::error_code& ec) {
  std::string words;
  core_ = accept(parent, request, std::move(options), words, ec);
}

endpoint::endpoint(endpoint&& other) noexcept = default;

endpoint& endpoint::operator=(endpoint&& other) noexcept {
  endpoint taken(std::move(other));
  std::swap(core_, taken.core_);
  std::swap(borrowed_, taken.borrowed_);
  return *this;
}

endpoint::~endpoint() {
  if (!core_ || detail::leave_to_parent(core_)) return;
  if (!borrowed_) core_->observers().disarm();
  const std::lock_guard guard(core_->worker().lock());
  core_->leave_share(core_);
}

void endpoint::wait_connected() {
  std::error_code ec;
  wait_connected(ec);
  if (ec) fail(ec, "connecting to " + (core_ ? core_->peer_name() : "nobody"), core_);
}

void endpoint::wait_connected(std::error_code& ec) {
  if (!core_) {
    ec = errc::closed;
    return;
  }
  if (detail::is_forked_child()) {
    ec = errc::forked_child;
    return;
  }
  core_->wait_connected(ec);
}

std::error_code endpoint::status() const noexcept {
  if (!core_) return errc::closed;
  const std::lock_guard guard(core_->worker().lock());
  return core_->status();
}

connection_state endpoint::state() const noexcept {
  if (!core_) return connection_state::closed;
  const std::lock_guard guard(core_->worker().lock());
  return core_->public_state();
}

connection_report endpoint::report() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->report();
}

std::vector<std::byte> endpoint::peer_info() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->session().theirs().info;
}

std::uint64_t endpoint::id() const noexcept { return core_ ? core_->number() : 0; }

request endpoint::start_flush(const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "flush of a connection that is not open");
  if (detail::is_forked_child()) {
    return detail::failed_request(errc::forked_child, "flush of a connection");
  }
  detail::worker_core& worker = core_->worker();
  const std::lock_guard guard(worker.lock());
  std::unique_ptr<detail::flush_operation> flush(worker.pool_of<detail::flush_operation>().take());
  flush->begin(worker, core_, nullptr, nullptr, true, worker.deadline_after(options.timeout));
  return core_access::make_request(flush.release());
}

void endpoint::flush(const io_options& options) { start_flush(options).wait(); }

void endpoint::flush(std::error_code& ec, const io_options& options) {
  start_flush(options).wait(ec);
}

void endpoint::fence() {
  if (!core_ || detail::is_forked_child()) return;
  const std::lock_guard guard(core_->worker().lock());
  core_->operations().fence();
}

std::size_t endpoint::cancel_all(std::chrono::nanoseconds limit) {
  if (!core_ || detail::is_forked_child()) return 0;
  return core_->worker().connections().cancel_all(core_.get(), limit);
}

void endpoint::close(close_mode mode) {
  std::error_code ec;
  close(mode, ec);
  if (ec) fail(ec, "closing the connection to " + core_->peer_name(), core_);
}

void endpoint::close(close_mode mode, std::error_code& ec) {
  ec.clear();
  if (!core_) return;
  core_->close(mode, ec);
  core_->worker().settle();
}

request endpoint::start_close(close_mode mode) {
  if (!core_) return {};
  if (detail::is_forked_child()) {
    return detail::failed_request(errc::forked_child, "closing a connection");
  }
  const std::lock_guard guard(core_->worker().lock());
  detail::close_operation* const closing = core_->start_close(mode);
  return closing == nullptr ? request() : core_access::make_request(closing);
}

namespace {

/// Has `watched` keep `companion` open, and leaves there what it kept before.
void exchange_companion(endpoint_core& watched, std::shared_ptr<endpoint_core>& companion) {
  const std::lock_guard guard(watched.worker().lock());
  companion = watched.observers().keep(std::move(companion));
}

std::shared_ptr<endpoint_core> companion_of(endpoint_core& watched) {
  const std::lock_guard guard(watched.worker().lock());
  return watched.observers().watched_by();
}

/// Returns whether `from` is `wanted`, or keeps it open through its companions. They may be of
/// several workers: one lock at a time is taken, and none when a share is dropped.
bool keeps_open(std::shared_ptr<endpoint_core> from, const endpoint_core& wanted) {
  while (from && from.get() != &wanted) from = companion_of(*from);
  return from != nullptr;
}

}  // namespace

void endpoint::watch_by(const endpoint& companion) {
  std::error_code ec;
  watch_by(companion, ec);
  if (ec) fail(ec, "having a connection watched by another one", std::string());
}

void endpoint::watch_by(const endpoint& companion, std::error_code& ec) {
  ec = status();
  const connection_state beside = companion.state();
  if (!ec && (beside == connection_state::closing || beside == connection_state::closed)) {
    ec = errc::closed;
  }
  if (ec) return;
  // One that the worker serves may be of the worker that its companion keeps.
  const bool keeps = core_->keeps_worker();
  std::shared_ptr<endpoint_core> other = companion.core_;  // then the one before, which goes last
  if (keeps) exchange_companion(*core_, other);
  // Looked at behind that: of several threads that make a ring at once, one sees it at least.
  if (keeps_open(companion.core_, *core_)) {
    if (keeps) exchange_companion(*core_, other);
    ec = errc::invalid_argument;
    return;
  }
  // Not the handle's share, which may be of more than the connection, and go before it.
  companion.core_->observers().watch(core_->shared_from_this());
}

socket_address endpoint::local() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->local();
}

ucp_ep* endpoint::native_handle() const noexcept {
  if (!core_) return nullptr;
  const std::lock_guard guard(core_->worker().lock());
  return core_->handle();
}

socket_address endpoint::peer() const { return core_ ? core_->peer() : socket_address(); }

std::vector<std::string> endpoint::transports() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->ucx().transports();
}

}  // namespace ucx
