#include "connection/connector.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "base/inbox_task.hpp"
#include "carrier/meeting_book.hpp"
#include "carrier/tls.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/listener_core.hpp"
#include "os/network_device.hpp"
#include "os/socket_beside.hpp"
#include "ucp/resource_error.hpp"
#include "ucx/error.hpp"
#include "wire/introduction.hpp"
#include "worker/alarm.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

using role = endpoint_core::role;

const connection_terms& terms_of(const endpoint_options& options, const worker_core& worker) {
  return options.terms ? *options.terms : worker.options().terms;
}

/// Returns whether a failure says less than another one would.
bool says_little(std::error_code failure) noexcept {
  return failure == errc::unreachable || failure == errc::not_supported ||
         failure == errc::bad_address;
}

std::error_code objection_to(const socket_address& peer, const endpoint_options& options,
                             worker_core& worker) {
  if (peer.is_unix()) {
    if (worker.context().is_of_ucx()) return errc::not_supported;
    if (peer.host().empty() || !options.local.empty()) return errc::bad_address;
  } else if (peer.empty() || peer.port() == 0) {
    return errc::bad_address;
  }
  if (!options.local.empty() && options.local.is_v6() != peer.is_v6()) return errc::bad_address;
  if (peer.is_v6() && !worker.context().speaks_ipv6()) return errc::not_supported;
  const connection_terms& terms = terms_of(options, worker);
  if (const std::error_code ec = complaint_about(terms, worker.context().features())) return ec;
  if (terms.unique && worker.connections().has_connection_to(peer)) return errc::already_exists;
  if (!options.local.empty()) {
    // UCX does not tell that it could not take the address.
    if (const std::error_code ec = listen_error(worker.api(), options.local)) return ec;
    if (!is_shown_by_interface(options.local)) return errc::bad_address;
  }
  return connect_error();
}

/// Says whether the server may be asked for which a token is chosen.
result<void> check_user(const worker_core& worker, const socket_address& peer,
                        const std::string& towards) {
  const auto& tls = worker.context().tls();
  if (!tls || towards.empty() || !peer.is_loopback()) return {};
  return tls->check_user(towards, stranger_at(peer));
}

/// Returns the connection that is to watch the new one; nothing where the options name none. One
/// that was lost may watch: the new one ends, too. Errors: closed.
result<std::shared_ptr<endpoint_core>> companion_in(const endpoint_options& options) {
  if (options.watched_by == nullptr) return nullptr;
  const connection_state state = options.watched_by->state();
  if (state == connection_state::closing || state == connection_state::closed) {
    return failure{errc::closed};
  }
  return core_access::core(*options.watched_by);
}

/// The resolver's thread leaves this for the worker. It was made where its want could be told.
class end_of_lookup final : public inbox_task {
 public:
  explicit end_of_lookup(move_only_handler<> then) noexcept : then_(std::move(then)) {}

  void run(worker_core&) override { then_(); }

 private:
  move_only_handler<> then_;
};

}  // namespace

endpoint_options without_handlers(const endpoint_options& options) {
  endpoint_options made;
  made.connect_timeout = options.connect_timeout;
  made.error_handling = options.error_handling;
  made.wait = options.wait;
  made.local = options.local;
  made.terms = options.terms;
  made.watched_by = options.watched_by;
  made.plain_peer = options.plain_peer;
  return made;
}

result<std::shared_ptr<endpoint_core>> connect_to(const std::shared_ptr<worker_core>& worker,
                                                  const worker_address& peer,
                                                  endpoint_options options,
                                                  clock::time_point deadline) {
  if (peer.empty()) {
    return failure{errc::bad_address,
                   "it is empty; a server without UCX has none, and is reached by its URL"};
  }
  std::error_code ec = complaint_about(terms_of(options, *worker), worker->context().features());
  if (!ec) ec = connect_error();
  if (ec) return failure{ec};
  auto watching = companion_in(options);
  if (!watching) return watching;
  result<std::shared_ptr<endpoint_core>> made = nullptr;
  {
    const std::lock_guard guard(worker->lock());
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.native().data());
    made = endpoint_core::make(*worker, worker, params, role::initiator, std::move(options));
    if (!made) return made;
    if (*watching) (*made)->observers().keep(*watching);
    (*made)->session().say_hello(deadline);
  }
  if (*watching) (*watching)->observers().watch(*made);
  return made;
}

result<std::shared_ptr<endpoint_core>> connect_to(const std::shared_ptr<worker_core>& worker,
                                                  const socket_address& peer,
                                                  endpoint_options options,
                                                  clock::time_point deadline,
                                                  const std::string& towards) {
  std::optional<meeting_secret> key = meeting_scope::take_key();
  const std::lock_guard guard(worker->lock());
  if (const std::error_code ec = objection_to(peer, options, *worker)) return failure{ec};
  if (const auto fit = check_user(*worker, peer, towards); !fit) return fit.why();
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = peer.native();
  params.sockaddr.addrlen = peer.native_size();
  if (!towards.empty() && !worker->context().is_of_ucx()) {
    params.field_mask |= UCP_EP_PARAM_FIELD_NAME;
    params.name = towards.c_str();
  }
  if (key && !worker->context().is_of_ucx()) give(params, *key);
  const socket_address local = options.local;
  if (!local.empty()) {
    params.field_mask |= UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
    params.local_sockaddr.addr = local.native();
    params.local_sockaddr.addrlen = local.native_size();
  }
  // A connection by sockets needs UCX's error handling, which also tells of a refusal.
  options.error_handling = error_handling_mode::peer;
  auto made = endpoint_core::make(*worker, worker, params, role::initiator, std::move(options));
  if (!made) return made;
  (*made)->set_peer(peer);
  (*made)->session().say_hello(deadline);
  return made;
}

std::string name_of_port(const named_host& host) {
  const bool is_v6 = host.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + host.host + ']' : host.host) + ':' + std::to_string(host.port);
}

destination::destination(const peer_address& peer) {
  const auto& place = core_access::place(peer);
  if (const auto* const named = std::get_if<named_host>(&place)) {
    host = *named;
  } else if (const auto* const one = std::get_if<socket_address>(&place)) {
    addresses = {*one};
  } else if (worker = std::get<worker_address>(place); worker.empty()) {
    addresses = {socket_address()};  // which is refused
  }
}

connector::connector(std::shared_ptr<worker_core> worker, destination to,
                     const endpoint_options& options, clock::time_point deadline,
                     move_only_handler<connector&> on_done)
    : worker_(std::move(worker)),
      to_(std::move(to)),
      options_(without_handlers(options)),
      deadline_(deadline),
      on_done_(std::move(on_done)) {}

connector::~connector() {
  const std::lock_guard guard(worker_->lock());
  if (!done_) cancel();
}

std::shared_ptr<connector> connector::start(std::shared_ptr<worker_core> worker, destination to,
                                            const endpoint_options& options,
                                            clock::time_point deadline,
                                            move_only_handler<connector&> on_done) {
  auto made = std::make_shared<connector>(std::move(worker), std::move(to), options, deadline,
                                          std::move(on_done));
  const std::lock_guard guard(made->worker_->lock());
  made->begin();
  return made;
}

void connector::begin() {
  // Where memory is short it is done, for that reason: no other code would tell the waiting caller.
  const auto later = [this](auto step) {
    return [weak = weak_from_this(), step] {
      const std::shared_ptr<connector> self = weak.lock();
      if (!self) return;
      try {
        step(*self);
      } catch (const std::bad_alloc&) {
        self->give_up(errc::no_memory);
      }
    };
  };
  alarm_ = std::make_unique<alarm>(*worker_,
                                   later([](connector& self) { self.give_up(errc::timed_out); }));
  alarm_->set(deadline_);
  auto try_them = later([](connector& self) { self.try_next(); });
  if (!to_.host) return worker_->defer(std::move(try_them));
  const auto look =
      std::make_shared<end_of_lookup>(later([](connector& self) { self.resolved(); }));
  // The lookup's thread holds no worker: it is told before the lookup goes, and not behind that.
  lookup_ = std::make_unique<lookup>(to_.host->host, to_.host->port,
                                     [worker = worker_.get(), look] { worker->hand_over(look); });
}

void connector::resolved() {
  if (done_ || !lookup_) return;
  resolution found = lookup_->take();
  lookup_.reset();
  if (found.failure) {
    note(found.failure, std::move(found.words));
    return finish();
  }
  to_.addresses = std::move(found.addresses);
  try_next_or_fail();
}

void connector::try_next_or_fail() noexcept {
  try {
    try_next();
  } catch (const std::bad_alloc&) {
    give_up(errc::no_memory);
  }
}

void connector::try_next() {
  while (!done_ && !connection_) {
    const std::size_t count = to_.worker.empty() ? to_.addresses.size() : 1;
    if (next_ >= count) return finish();
    const clock::time_point now = worker_->api().now();
    const auto share = share_of(deadline_ - now, count - next_);
    ++next_;
    try_one(after(now, share));
  }
}

void connector::try_one(clock::time_point until) {
  // A certificate is for the name that was looked up, and not for the address that was found.
  const auto& tls = worker_->context().tls();
  if (to_.towards.empty() && to_.host && tls && tls->needs_address()) {
    to_.towards = name_of_port(*to_.host);
  }
  auto begun = to_.worker.empty()
                   ? connect_to(worker_, to_.addresses[next_ - 1], without_handlers(options_),
                                until, to_.towards)
                   : connect_to(worker_, to_.worker, without_handlers(options_), until);
  if (!begun) {
    const std::error_code why = begun.why().code;
    const bool by_terms = why == errc::feature_disabled;
    return note(why, by_terms ? words_about_terms(why) : std::move(begun.why().text),
                begun.why().ucx_status);
  }
  connection_ = *std::move(begun);
  connection_->observers().set_observer(weak_from_this());
  if (connection_->state() != endpoint_state::ready) return;
  failure_.clear();  // on a context without feature::am no peer is asked
  finish();
}

void connector::give_up(errc why) noexcept {
  note(make_error_code(why), {});
  finish();
}

void connector::note(std::error_code failure, std::string words,
                     std::optional<int> ucx_status) noexcept {
  if (failure_ && !says_little(failure_)) return;
  failure_ = failure;
  words_ = std::move(words);
  ucx_status_ = ucx_status;
}

void connector::established(endpoint_core& connection) {
  if (done_ || &connection != connection_.get()) return;
  failure_.clear();
  words_.clear();
  finish();
}

void connector::ended(endpoint_core& connection, bool) {
  if (done_ || &connection != connection_.get()) return;
  const std::error_code why = connection.failure();
  note(why, if_there_is_memory([&] { return connection.words(); }), connection.ucx_status_of(why));
  connection_.reset();
  try_next_or_fail();
}

/// Everything that comes here does so in the worker's own work: whom it tells is not inside of a
/// call of theirs.
void connector::finish() noexcept {
  if (std::exchange(done_, true)) return;
  if (alarm_) alarm_->call_off();
  lookup_.reset();
  if (failure_) drop();
  worker_->wake_waiters();
  if (on_done_) std::exchange(on_done_, {})(*this);
}

void connector::cancel() noexcept {
  on_done_.reset();
  done_ = true;
  if (alarm_) alarm_->call_off();
  lookup_.reset();
  drop();
}

/// At once: the caller may hold the lock.
void connector::drop() noexcept {
  if (!connection_) return;
  connection_->closing().close(close_mode::abort);
  connection_.reset();
}

}  // namespace ucx::detail
