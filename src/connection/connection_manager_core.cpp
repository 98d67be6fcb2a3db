#include "connection/connection_manager_core.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/close_operation.hpp"
#include "connection/connector.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "wire/introduction.hpp"
#include "worker/alarm.hpp"
#include "worker/handler_scope.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// When what there was no memory for is tried again.
constexpr std::chrono::milliseconds soon{10};

}  // namespace

managed_connection::managed_connection(connection_manager_core& manager, std::string_view name,
                                       peer_address where)
    : manager_(&manager), where_(std::move(where)) {
  peer_.name = name;
}

managed_connection::~managed_connection() = default;

void managed_connection::prepare() {
  alarm_ = std::make_unique<alarm>(manager_->worker(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

void managed_connection::try_now() noexcept {
  attempt_at_ = manager_->worker().api().now();
  look();
}

/// Does what is due; what there is no memory for is due again soon.
void managed_connection::look() noexcept {
  if (manager_ == nullptr) return;
  if (untold_) tell();
  const clock::time_point now = manager_->worker().api().now();
  if (attempt_at_ <= now) {
    attempt_at_ = clock::time_point::max();
    try {
      ask();
    } catch (const std::bad_alloc&) {
      attempt_at_ = now + soon;
    }
  }
  plan();
}

void managed_connection::plan() noexcept {
  clock::time_point next = attempt_at_;
  if (untold_) next = std::min(next, manager_->worker().api().now() + soon);
  if (next == clock::time_point::max()) return alarm_->call_off();
  alarm_->set(next);
}

void managed_connection::ask() {
  if (!manager_->options().on_attempt) return connect();
  manager_->ask(peer_, weak_from_this(), ++question_);
}

void managed_connection::connect() noexcept {
  try {
    connector_ = start();
  } catch (const std::bad_alloc&) {
    failed(make_error_code(errc::no_memory), if_there_is_memory("no memory for an attempt"));
  }
}

std::shared_ptr<connector> managed_connection::start() {
  const connection_manager_options& wanted = manager_->options();
  endpoint_options options;
  options.error_handling = wanted.error_handling;
  options.local = wanted.local;
  options.terms = wanted.terms;
  worker_core& worker = manager_->worker();
  auto limit = wanted.connect_timeout;
  if (limit <= limit.zero()) limit = worker.options().connect_timeout;
  return connector::start(manager_->shared_worker(), destination(where_), options,
                          after(worker.api().now(), limit),
                          [weak = weak_from_this()](connector& done) {
                            if (const auto self = weak.lock()) self->connected(done);
                          });
}

void managed_connection::connect_again() noexcept {
  if (peer_.state == connection_state::active || connector_) return;
  ++question_;
  peer_.attempts = 0;
  change(connection_state::connecting);
  try_now();
}

void managed_connection::connected(connector& done) noexcept {
  if (manager_ == nullptr || &done != connector_.get()) return;
  const std::shared_ptr<connector> kept = std::move(connector_);
  if (done.failure()) {
    return failed(done.failure(), if_there_is_memory([&] { return done.words(); }));
  }
  connection_ = done.take();
  connection_->observers().set_observer(weak_from_this());
  // It may have been lost since.
  if (connection_->state() != endpoint_state::ready) return ended(*connection_, true);
  active_since_ = manager_->worker().api().now();
  failed_before_ = std::exchange(peer_.attempts, 0U);
  change(connection_state::active);
}

void managed_connection::ended(endpoint_core& connection, bool) noexcept {
  if (manager_ == nullptr || &connection != connection_.get()) return;
  const std::shared_ptr<endpoint_core> gone = std::move(connection_);
  std::error_code why = gone->failure();
  if (!why || why == errc::canceled) why = errc::closed;
  // A peer that takes connections and drops them at once has failed, too: no storm of attempts.
  const bool stood = manager_->worker().api().now() - active_since_ >= waited_;
  if (!stood) peer_.attempts = failed_before_;
  failed(why, if_there_is_memory([&] { return gone->words(); }));
}

void managed_connection::failed(std::error_code why, std::string words) noexcept {
  peer_.failure = why;
  peer_.error_message = std::move(words);
  ++peer_.attempts;
  if (peer_.attempts > manager_->options().reconnect.max_attempts) {
    return change(connection_state::failed);
  }
  waited_ = manager_->delay(peer_.attempts);
  attempt_at_ = after(manager_->worker().api().now(), waited_);
  change(connection_state::connecting);
  plan();
}

void managed_connection::answered(bool go_on, std::uint64_t question) noexcept {
  if (!awaits(question)) return;
  if (go_on) return connect();
  if (!peer_.failure) {
    peer_.failure = errc::canceled;
    peer_.error_message = if_there_is_memory("the program did not want the attempt");
  }
  change(connection_state::failed);
}

std::shared_ptr<endpoint_core> managed_connection::begin_close() noexcept {
  change(connection_state::closing);
  return let_go();
}

std::shared_ptr<endpoint_core> managed_connection::let_go() noexcept {
  manager_ = nullptr;
  alarm_->call_off();
  if (connector_) std::exchange(connector_, nullptr)->cancel();
  return std::move(connection_);
}

void managed_connection::change(connection_state state) noexcept {
  const bool same = state == peer_.state && state != connection_state::connecting;
  peer_.state = state;
  manager_->worker().wake_waiters();
  if (same) return;
  tell();
  if (untold_) plan();
}

/// Where memory is short, of several changes the last one is told of.
void managed_connection::tell() noexcept {
  try {
    manager_->tell_change(peer_);
    untold_ = false;
  } catch (const std::bad_alloc&) {
    untold_ = true;
  }
}

connection_manager_core::connection_manager_core(std::shared_ptr<worker_core> worker,
                                                 connection_manager_options options)
    : worker_(std::move(worker)),
      options_(std::move(options)),
      random_(static_cast<std::minstd_rand::result_type>(worker_->random())) {}

result<std::shared_ptr<connection_manager_core>> connection_manager_core::make(
    std::shared_ptr<worker_core> worker, connection_manager_options options) {
  std::string doing = "making a connection manager";
  if (!worker) return failure{errc::closed, std::move(doing)};
  if (worker->is_inherited()) return failure{errc::forked_child, std::move(doing)};
  const reconnect_options& again = options.reconnect;
  const bool sensible = again.first_delay >= again.first_delay.zero() &&
                        again.max_delay >= again.first_delay && again.factor >= 1 &&
                        again.factor <= 1e6 && again.jitter >= 0 && again.jitter <= 1;
  if (!sensible) return failure{errc::invalid_argument, std::move(doing)};
  if (options.terms) {
    const std::error_code unusable = complaint_about(*options.terms, worker->context().features());
    if (unusable == errc::feature_disabled) doing.append(": ").append(words_about_terms(unusable));
    if (unusable) return failure{unusable, std::move(doing)};
  }
  return std::make_shared<connection_manager_core>(std::move(worker), std::move(options));
}

bool connection_manager_core::is_inherited() const noexcept { return worker_->is_inherited(); }

std::shared_ptr<managed_connection> connection_manager_core::at(std::string_view name) const {
  const auto found = peers_.find(name);
  return found == peers_.end() ? nullptr : found->second;
}

std::error_code connection_manager_core::add(std::string_view name, peer_address where) {
  const std::lock_guard guard(worker_->lock());
  if (closed_) return errc::closed;
  if (at(name)) return errc::already_exists;
  if (peers_.size() >= options_.max_peers) return errc::busy;
  if (name.empty()) return errc::bad_name;
  if (options_.error_handling == error_handling_mode::none && destination(where).worker.empty()) {
    return errc::invalid_argument;
  }
  auto made = std::make_shared<managed_connection>(*this, name, std::move(where));
  made->prepare();
  peers_.emplace(name, made);
  made->try_now();
  return {};
}

std::shared_ptr<endpoint_core> connection_manager_core::find(std::string_view name) const {
  const std::lock_guard guard(worker_->lock());
  const auto peer = at(name);
  return peer ? peer->connection() : nullptr;
}

failure connection_manager_core::not_active(std::string_view name, std::error_code why,
                                            const std::string& words) {
  std::string text = "waiting for the peer \"";
  text.append(name).append("\"");
  if (!words.empty()) text.append(" (").append(words).append(")");
  return {why, std::move(text)};
}

result<std::shared_ptr<endpoint_core>> connection_manager_core::wait_active(
    std::string_view name, const io_options& options) {
  const auto kept = shared_from_this();  // a handler may end the manager that is waited for
  if (is_inherited()) return not_active(name, errc::forked_child);
  std::error_code ec;
  std::string words;
  std::shared_ptr<endpoint_core> found;
  const auto look = [&] {
    const auto peer = at(name);
    if (!peer) {
      ec = closed_ ? errc::closed : errc::no_such_name;
    } else if (peer->closing()) {
      ec = errc::closed;
    } else if (peer->peer().state == connection_state::failed) {
      ec = peer->peer().failure;
      words = peer->peer().error_message;
    } else {
      found = peer->connection();
      words = peer->peer().error_message;
    }
    return ec || found;
  };
  std::unique_lock guard(worker_->lock());
  const clock::time_point until = worker_->deadline_after(options.timeout);
  const bool is_known = look();
  guard.unlock();
  if (!is_known && worker_->in_handler()) {
    ec = errc::would_deadlock;
  } else if (!is_known && !worker_->wait_until(until, look)) {
    ec = errc::timed_out;
  }
  if (ec) return not_active(name, ec, words);
  return found;
}

std::optional<managed_peer> connection_manager_core::status(std::string_view name) const {
  const std::lock_guard guard(worker_->lock());
  const auto peer = at(name);
  return peer ? std::optional(peer->peer()) : std::nullopt;
}

std::vector<managed_peer> connection_manager_core::peers() const {
  const std::lock_guard guard(worker_->lock());
  std::vector<managed_peer> all;
  for (const auto& [name, each] : peers_) all.push_back(each->peer());
  return all;
}

std::error_code connection_manager_core::reconnect(std::string_view name) {
  const std::lock_guard guard(worker_->lock());
  const auto peer = at(name);
  if (!peer || peer->closing()) return closed_ || peer ? errc::closed : errc::no_such_name;
  peer->connect_again();
  return {};
}

connection_manager_core::chosen connection_manager_core::choose(
    std::optional<std::string_view> name) const {
  chosen all;
  for (const auto& [each, peer] : peers_) {
    if ((!name || each == *name) && !peer->closing()) all.push_back(peer);
  }
  return all;
}

void connection_manager_core::forget(const managed_connection& closed) noexcept {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const auto& each) { return each.second.get() == &closed; });
  if (found != peers_.end() && found->second.get() == &closed) peers_.erase(found);
}

void connection_manager_core::close(std::optional<std::string_view> name,
                                    close_mode mode) noexcept {
  const auto kept = shared_from_this();  // a handler that is told of the end may end the manager
  const bool waits = !worker_->in_handler();
  {
    const std::lock_guard guard(worker_->lock());
    if (!name) closed_ = true;
  }
  if (waits && mode == close_mode::flush) {
    close_in_order(name);
  } else {
    close_at_once(name);
  }
  if (name) return;
  {
    const std::lock_guard guard(worker_->lock());
    silent_ = silent_ || !waits || mode == close_mode::abort;
  }
  if (!waits) return;
  // Objects that the handlers refer to may go when this returns.
  worker_->wait_until(clock::time_point::max(),
                      [this] { return calling_ == 0 && (silent_ || untold_ == 0); });
  const std::lock_guard guard(worker_->lock());
  silent_ = true;
}

void connection_manager_core::close_at_once(std::optional<std::string_view> name) noexcept {
  const auto is_meant = [&](const auto& each) {
    return (!name || each.first == *name) && !each.second->closing();
  };
  for (;;) {
    std::shared_ptr<managed_connection> closing;  // goes behind the lock
    std::shared_ptr<endpoint_core> connection;
    {
      const std::lock_guard guard(worker_->lock());
      const auto found = std::find_if(peers_.begin(), peers_.end(), is_meant);
      if (found == peers_.end()) break;
      closing = std::move(found->second);
      peers_.erase(found);
      connection = closing->let_go();
    }
    if (connection) connection->closing().close(close_mode::abort);
  }
  const std::lock_guard guard(worker_->lock());
  worker_->wake_waiters();
}

void connection_manager_core::close_in_order(std::optional<std::string_view> name) noexcept {
  chosen closing;
  std::vector<std::shared_ptr<endpoint_core>> left;
  std::vector<close_operation*> started;
  try {
    const std::lock_guard guard(worker_->lock());
    chosen all = choose(name);
    left.reserve(all.size());
    started.reserve(all.size());
    closing = std::move(all);
    for (const auto& each : closing) {
      std::shared_ptr<endpoint_core> connection = each->begin_close();
      if (!connection) continue;
      left.push_back(std::move(connection));
      close_operation* const one = left.back()->closing().start(close_mode::flush);
      if (one != nullptr) started.push_back(one);
    }
  } catch (const std::bad_alloc&) {  // what is left ends at once
    const std::lock_guard guard(worker_->lock());
    for (const auto& each : closing) {
      if (std::shared_ptr<endpoint_core> connection = each->let_go()) {
        left.push_back(std::move(connection));
      }
    }
  }
  for (close_operation* const each : started) {
    worker_->wait(*each, clock::time_point::max());
    each->drop();
  }
  for (const auto& each : left) each->closing().close(close_mode::abort);
  {
    const std::lock_guard guard(worker_->lock());
    for (const auto& each : closing) {
      forget(*each);
      try {
        managed_peer told = each->peer();
        told.state = connection_state::closed;
        tell_change(told);
      } catch (const std::bad_alloc&) {  // there is no memory for what would be said
      }
    }
  }
  close_at_once(name);  // of which there may have been no list
}

clock::duration connection_manager_core::delay(unsigned failed) {
  const reconnect_options& again = options_.reconnect;
  const double longest = static_cast<double>(again.max_delay.count());
  const double grown = static_cast<double>(again.first_delay.count()) *
                       std::pow(again.factor, std::min(failed - 1, 1000U));
  const double share = std::uniform_real_distribution<double>(-again.jitter, again.jitter)(random_);
  // In doubles, and bounded before it becomes a number of ticks again.
  constexpr double century = 3.2e18;
  return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(
      std::min(std::min(grown, longest) * (1 + share), century)));
}

void connection_manager_core::tell_change(const managed_peer& peer) {
  if (!options_.on_change) return;
  worker_->queue_handler([weak = weak_from_this(), peer] {
    const auto self = weak.lock();
    if (!self) return;
    std::unique_lock guard(self->worker_->lock());
    --self->untold_;
    if (self->silent_) return;
    const handler_scope calling(*self->worker_, guard, self->calling_);
    self->options_.on_change(peer);
  });
  ++untold_;
}

void connection_manager_core::ask(const managed_peer& peer, std::weak_ptr<managed_connection> asked,
                                  std::uint64_t question) {
  worker_->queue_handler([weak = weak_from_this(), peer, asked = std::move(asked), question] {
    const auto self = weak.lock();
    if (!self) return;
    std::unique_lock guard(self->worker_->lock());
    const std::shared_ptr<managed_connection> kept = asked.lock();
    if (self->closed_ || !kept || !kept->awaits(question)) return;
    struct answer {  // under the lock; a handler that throws does not want to go on
      managed_connection& to;
      std::uint64_t question;
      bool go_on;
      ~answer() { to.answered(go_on, question); }
    };
    answer given{*kept, question, false};
    const handler_scope calling(*self->worker_, guard, self->calling_);
    given.go_on = self->options_.on_attempt(peer);
  });
}

}  // namespace ucx::detail
