#include "ucx/endpoint.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "connection/channel.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/connector.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/listener_core.hpp"
#include "connection/misplaced_option.hpp"
#include "connection/old_handlers.hpp"
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
using detail::failure;
using detail::result;
using detail::worker_core;
using role = endpoint_core::role;

std::shared_ptr<worker_core> usable(const worker& parent, std::error_code& ec) {
  std::shared_ptr<worker_core> core = core_access::core(parent);
  ec = core ? std::error_code() : make_error_code(errc::closed);
  if (core && core->is_inherited()) ec = errc::forked_child;
  return core;
}

detail::clock::time_point connect_deadline(worker_core& worker, std::chrono::nanoseconds timeout) {
  if (timeout <= timeout.zero()) timeout = worker.options().connect_timeout;
  return detail::after(worker.api().now(), timeout);
}

std::string with_words(std::string doing, const std::string& words) {
  return words.empty() ? std::move(doing) : std::move(doing) + " (" + words + ")";
}

/// For a connection that was not made, whose error may have no words yet. A peer may give the same
/// error as its reason, and says so itself.
failure not_made(failure why, std::string doing) {
  if (why.text.empty() && why.code == errc::feature_disabled) {
    why.text = detail::words_about_terms(why.code);
  }
  why.text = with_words(std::move(doing), why.text);
  return why;
}

/// Returns the core of `parent`, if it can be used and the options are for this way to connect.
result<std::shared_ptr<worker_core>> usable(const worker& parent, const endpoint_options& options,
                                            connected_by way, const std::string& doing) {
  std::error_code ec;
  std::shared_ptr<worker_core> core = usable(parent, ec);
  if (ec) return failure{ec, doing};
  const char* const misplaced = detail::misplaced_option(options, way);
  if (misplaced != nullptr) return not_made({errc::invalid_argument, misplaced}, doing);
  return core;
}

result<std::shared_ptr<endpoint_core>> connect(const worker& parent, const worker_address& peer,
                                               endpoint_options options) {
  const std::string doing = "connecting by worker address";
  const auto worker = usable(parent, options, connected_by::worker_address, doing);
  if (!worker) return worker.why();
  const auto deadline = connect_deadline(**worker, options.connect_timeout);
  auto made = detail::connect_to(*worker, peer, std::move(options), deadline);
  if (!made) return not_made(std::move(made).why(), doing);
  return made;
}

/// By TLS the token is that for `towards`; where that is empty, that of the context.
result<std::shared_ptr<endpoint_core>> connect(const worker& parent, const socket_address& peer,
                                               endpoint_options options,
                                               const std::string& towards = {}) {
  // Now: a handler may end what `peer` is of.
  const std::string doing = "connecting to " + to_string(peer);
  const auto hint = [](std::error_code why) {
    return why == errc::not_supported ? detail::no_ipv6 : "";
  };
  const auto worker = usable(parent, options, connected_by::socket_address, doing);
  if (!worker) return worker.why();
  const auto deadline = connect_deadline(**worker, options.connect_timeout);
  const bool waits = options.wait != connect_wait::none;
  if (waits && (*worker)->in_handler()) return failure{errc::would_deadlock, doing};
  // Failures until here are told by the constructor alone.
  auto begun = detail::connect_to(*worker, peer,
                                  waits ? detail::without_handlers(options) : std::move(options),
                                  deadline, towards);
  if (!begun) {
    const char* const advice = hint(begun.why().code);
    return not_made(std::move(begun).why(), doing + advice);
  }
  if (!waits) return begun;
  const std::shared_ptr<endpoint_core>& made = *begun;
  const std::error_code ec = made->wait_connected();
  if (ec) return failure{ec, with_words(doing + hint(ec), made->words()), made->ucx_status_of(ec)};
  made->observers().arm(std::move(options.events));
  return begun;
}

result<std::shared_ptr<endpoint_core>> connect(const worker& parent, const detail::named_host& peer,
                                               endpoint_options options) {
  const std::string doing =
      "connecting to " + detail::shown(peer.host, 256) + ":" + std::to_string(peer.port);
  const auto usable_worker = usable(parent, options, connected_by::name, doing);
  if (!usable_worker) return usable_worker.why();
  worker_core& worker = **usable_worker;
  if (worker.in_handler()) return failure{errc::would_deadlock, doing};
  const auto deadline = connect_deadline(worker, options.connect_timeout);
  const auto connecting =
      detail::connector::start(*usable_worker, detail::destination(peer), options, deadline, {});
  worker.wait_until(detail::clock::time_point::max(), [&] { return connecting->done(); });
  std::shared_ptr<endpoint_core> made;
  {
    const std::lock_guard guard(worker.lock());
    if (const std::error_code why = connecting->failure()) {
      return not_made({why, connecting->words(), connecting->ucx_status()}, doing);
    }
    made = connecting->take();
  }
  made->observers().arm(std::move(options.events));
  return made;
}

result<std::shared_ptr<endpoint_core>> accept(const worker& parent, connection_request& request,
                                              endpoint_options options) {
  const std::string doing = "accepting a connection from " + to_string(request.peer());
  const auto worker = usable(parent, options, connected_by::request, doing);
  if (!worker) return worker.why();
  auto& pending = core_access::pending(request);
  if (!pending) return failure{errc::closed, doing};
  if (pending->is_inherited()) return failure{errc::forked_child, doing};
  auto made = pending->accept(**worker, *worker, std::move(options));
  if (!made) return not_made(std::move(made).why(), doing);
  return made;
}

endpoint_options with_old_handlers(endpoint_options options) {
  options.events = detail::events_of(options);
  return options;
}

/// Returns the text of an error that `core` may have words about.
std::string about(std::string doing, const std::shared_ptr<endpoint_core>& core) {
  return with_words(std::move(doing), core ? core->words() : std::string());
}

/// Returns UCX's status, if `core` has ended for `why`.
std::optional<int> status_of(std::error_code why, const std::shared_ptr<endpoint_core>& core) {
  return core ? core->ucx_status_of(why) : std::optional<int>();
}

}  // namespace

endpoint::endpoint(const worker& parent, const peer_address& peer, endpoint_options options,
                   std::error_code& ec)
    : core_(std::visit(
                [&](const auto& place) {
                  return connect(parent, place, with_old_handlers(std::move(options)));
                },
                core_access::place(peer))
                .or_end(ec)) {}

endpoint::endpoint(const worker& parent, connection_request&& request, endpoint_options options,
                   std::error_code& ec)
    : core_(accept(parent, request, with_old_handlers(std::move(options))).or_end(ec)) {}

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

void endpoint::wait_connected(std::error_code& ec) {
  const std::shared_ptr<endpoint_core> kept = core_;  // a handler may destroy the endpoint
  std::error_code outcome = kept ? errc::forked_child : errc::closed;
  if (kept && !kept->is_inherited()) outcome = kept->wait_connected();
  detail::end_with(
      outcome, ec,
      [&kept] { return about("connecting to " + (kept ? kept->peer_name() : "nobody"), kept); },
      [&kept, outcome] { return status_of(outcome, kept); });
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

bool endpoint::is_allowed(access_right wanted, std::string_view name) const {
  if (!core_ || core_->is_inherited()) return false;
  const std::lock_guard guard(core_->worker().lock());
  const detail::control_server* const server = core_->worker().control_server();
  const std::shared_ptr<const peer_identity> peer = core_->ucx().identity();
  return server == nullptr ||
         server->allows(peer ? *peer : peer_identity(), core_->worker().identity(), core_->number(),
                        wanted, name);
}

std::uint64_t endpoint::id() const noexcept { return core_ ? core_->number() : 0; }

request endpoint::start_flush(const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "flush of a connection that is not open");
  if (core_->is_inherited()) {
    return detail::failed_request(errc::forked_child, "flush of a connection");
  }
  detail::worker_core& worker = core_->worker();
  const std::lock_guard guard(worker.lock());
  std::unique_ptr<detail::flush_operation> flush(worker.pool_of<detail::flush_operation>().take());
  flush->begin(worker, core_, nullptr, nullptr, true, worker.deadline_after(options.timeout));
  return core_access::make_request(flush.release());
}

void endpoint::flush(const io_options& options, std::error_code& ec) {
  start_flush(options).wait(ec);
}

void endpoint::fence() {
  if (!core_ || core_->is_inherited()) return;
  const std::lock_guard guard(core_->worker().lock());
  core_->operations().fence();
}

std::size_t endpoint::cancel_all(std::chrono::nanoseconds limit) {
  if (!core_ || core_->is_inherited()) return 0;
  const std::shared_ptr<endpoint_core> kept = core_;  // a handler may destroy the endpoint
  return kept->worker().connections().cancel_all(kept.get(), limit);
}

void endpoint::close(close_mode mode, std::error_code& ec) {
  const std::shared_ptr<endpoint_core> kept = core_;  // a handler may destroy the endpoint
  std::error_code outcome;
  if (kept) {
    outcome = kept->closing().close(mode);
    kept->worker().settle();
  }
  detail::end_with(
      outcome, ec,
      [&kept] { return about("closing the connection to " + kept->peer_name(), kept); },
      [&kept, outcome] { return status_of(outcome, kept); });
}

request endpoint::start_close(close_mode mode) {
  if (!core_) return {};
  if (core_->is_inherited()) {
    return detail::failed_request(errc::forked_child, "closing a connection");
  }
  const std::lock_guard guard(core_->worker().lock());
  detail::close_operation* const closing = core_->closing().start(mode);
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

/// Has `companion` watch `watched`, or returns why it can not.
std::error_code watch(const std::shared_ptr<endpoint_core>& watched,
                      const std::shared_ptr<endpoint_core>& companion) {
  // One that the worker serves may be of the worker that its companion keeps.
  const bool keeps = watched->keeps_worker();
  std::shared_ptr<endpoint_core> other = companion;  // then the one before, which goes last
  if (keeps) exchange_companion(*watched, other);
  // Looked at behind that: of several threads that make a ring at once, one sees it at least.
  if (keeps_open(companion, *watched)) {
    if (keeps) exchange_companion(*watched, other);
    return errc::invalid_argument;
  }
  // Not the handle's share, which may be of more than the connection, and go before it.
  companion->observers().watch(watched->shared_from_this());
  return {};
}

}  // namespace

void endpoint::watch_by(const endpoint& companion, std::error_code& ec) {
  std::error_code outcome = status();
  const connection_state beside = companion.state();
  if (!outcome && (beside == connection_state::closing || beside == connection_state::closed)) {
    outcome = errc::closed;
  }
  if (!outcome) outcome = watch(core_, companion.core_);
  detail::end_with(outcome, ec, [] { return "having a connection watched by another one"; });
}

socket_address endpoint::local() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->local();
}

ucp_ep* endpoint::native_handle() const noexcept {
  if (!core_) return nullptr;
  const std::lock_guard guard(core_->worker().lock());
  return core_->worker().context().is_of_ucx() ? core_->handle() : nullptr;
}

socket_address endpoint::peer() const { return core_ ? core_->peer() : socket_address(); }

std::vector<std::string> endpoint::transports() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->ucx().transports();
}

namespace detail {

endpoint core_access::connect(const worker& parent, const socket_address& peer,
                              const std::string& towards) {
  endpoint made;
  made.core_ = ucx::connect(parent, peer, {}, towards).or_throw();
  return made;
}

}  // namespace detail
}  // namespace ucx
