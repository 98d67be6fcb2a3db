#include "connection/endpoint_observers.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "connection/connection_messages.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/handler_scope.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Of a connection's end: who is to be told still, and how.
constexpr unsigned to_users = 1;
constexpr unsigned to_observer = 2;
constexpr unsigned to_wards = 4;
constexpr unsigned was_there = 8;

/// Returns what `all` makes, or `least` where there is no memory for it.
template <class All, class Told>
Told or_less(All all, Told least) noexcept {
  try {
    return all();
  } catch (const std::bad_alloc&) {
    return least;
  }
}

/// Returns a report of what needs no memory.
connection_report known_of(std::uint64_t number, const socket_address& peer) noexcept {
  connection_report known;
  known.id = number;
  known.peer = peer;
  return known;
}

}  // namespace

endpoint_observers::endpoint_observers(endpoint_core& connection, connection_messages& messages,
                                       connection_events&& handlers) noexcept
    : connection_(connection), messages_(messages), handlers_(std::move(handlers)) {}

void endpoint_observers::arm(connection_events&& handlers) {
  const std::lock_guard guard(connection_.worker().lock());
  handlers_.on_established = std::move(handlers.on_established);
  handlers_.on_closed = std::move(handlers.on_closed);
  queue_tell(event::established);
  if (connection_.state() == endpoint_state::failed) queue_tell(event::closed);
}

void endpoint_observers::disarm() noexcept {
  connection_events unused;  // destroyed behind the lock
  std::shared_ptr<message_handlers> messages;
  worker_core& worker = connection_.worker();
  {
    const std::lock_guard guard(worker.lock());
    std::swap(unused, handlers_);
    messages_.swap_handlers(messages);  // what is still to be told holds them itself
  }
  if (worker.in_handler()) return;
  worker.wait_until(clock::time_point::max(), [this] { return telling_ == 0; });
}

void endpoint_observers::drop_handlers() noexcept try {
  worker_core& worker = connection_.worker();
  if (handlers_.on_established || handlers_.on_refused || handlers_.on_closed) {
    const auto unused = std::make_shared<connection_events>(std::move(handlers_));
    try {
      worker.queue_handler([unused] {});
    } catch (const std::bad_alloc&) {
      handlers_ = std::move(*unused);
      throw;
    }
    handlers_ = {};
  }
  std::shared_ptr<message_handlers> messages;
  messages_.swap_handlers(messages);
  if (!messages) return;
  try {
    worker.queue_handler([messages] {});
  } catch (const std::bad_alloc&) {
    messages_.swap_handlers(messages);
    throw;
  }
} catch (const std::bad_alloc&) {
}

void endpoint_observers::established() {
  queue_tell(event::established);
  tell_observer(event::established);
}

void endpoint_observers::ended(bool was_established) noexcept {
  unsaid_ = to_users | to_observer | (was_established ? was_there : 0U);
  if (!wards_.empty() && connection_.why_ended() != errc::canceled) unsaid_ |= to_wards;
  say_end();
}

void endpoint_observers::say_end() noexcept {
  const event ended = (unsaid_ & was_there) != 0 ? event::closed : event::refused;
  try {
    if ((unsaid_ & to_users) != 0) queue_tell(ended);
    unsaid_ &= ~to_users;
    if ((unsaid_ & to_observer) != 0) tell_observer(ended);
    unsaid_ &= ~to_observer;
    if ((unsaid_ & to_wards) != 0) fail_wards();
    unsaid_ = 0;
  } catch (const std::bad_alloc&) {
    connection_.worker().tick_soon();
  }
}

/// The handler stays where disarm() finds it until it is called.
void endpoint_observers::queue_tell(event what) {
  const bool heard = what == event::established ? static_cast<bool>(handlers_.on_established)
                     : what == event::refused   ? static_cast<bool>(handlers_.on_refused)
                                                : static_cast<bool>(handlers_.on_closed);
  if (!heard) return;
  connection_.worker().queue_handler([weak = connection_.weak_from_this(), what] {
    if (const std::shared_ptr<endpoint_core> kept = weak.lock()) kept->observers().tell(what);
  });
}

/// Calls a user's handler by `call`, without the lock.
template <class Handler, class Call>
void endpoint_observers::call(std::unique_lock<worker_lock>& guard, Handler& handler, Call call) {
  Handler taken = std::move(handler);
  if (!taken) return;
  const handler_scope telling(connection_.worker(), guard, telling_);
  Handler here = std::move(taken);  // destroyed without the lock, whatever it does
  call(here);
}

/// Where memory is short, in fewer words: else no handler would be told, and the process end.
void endpoint_observers::tell(event what) {
  std::unique_lock guard(connection_.worker().lock());
  const std::uint64_t number = connection_.number();
  const socket_address peer = connection_.peer();
  const std::error_code why = connection_.why_ended();
  if (what == event::established) {
    const auto report = or_less([this] { return connection_.report(); }, known_of(number, peer));
    return call(guard, handlers_.on_established, [&](auto& handler) {
      handler(core_access::make_endpoint(connection_.shared_from_this()), report);
    });
  }
  const auto end = or_less([this] { return connection_.end(); },
                           connection_end{.id = number, .peer = peer, .reason = why});
  const auto tell_it = [&end](auto& handler) { handler(end); };
  if (what == event::refused) return call(guard, handlers_.on_refused, tell_it);
  call(guard, handlers_.on_closed, tell_it);
}

void endpoint_observers::tell_observer(event what) {
  if (observer_.expired()) return;
  connection_.worker().defer([weak = connection_.weak_from_this(), observer = observer_, what] {
    const std::shared_ptr<endpoint_core> kept = weak.lock();
    if (!kept) return;
    --kept->observers().untold_;
    const std::shared_ptr<connection_observer> told = observer.lock();
    if (!told) return;
    try {
      if (what == event::established) return told->established(*kept);
      told->ended(*kept, what == event::closed);
    } catch (const std::bad_alloc&) {
      kept->observers().not_told(what);
      throw;
    }
  });
  ++untold_;
}

/// The observer had no memory for what it was told. Of an end it is told again. A connection that
/// it does not know of is no use, and is ended.
void endpoint_observers::not_told(event what) noexcept {
  if (what == event::established) {
    return connection_.blame(errc::no_memory, "no memory for who is told of the connection");
  }
  unsaid_ |= to_observer | (what == event::closed ? was_there : 0U);
  connection_.owe(endpoint_core::to_tell);
}

bool endpoint_observers::is_observed_by(const connection_observer& observer) const noexcept {
  return observer_.lock().get() == &observer;
}

std::shared_ptr<endpoint_core> endpoint_observers::keep(
    std::shared_ptr<endpoint_core> watching) noexcept {
  return std::exchange(watched_by_, std::move(watching));
}

void endpoint_observers::watch(const std::shared_ptr<endpoint_core>& ward) {
  const std::lock_guard guard(connection_.worker().lock());
  std::erase_if(wards_, [](const auto& each) { return each.expired(); });
  wards_.push_back(ward);
  if (connection_.state() == endpoint_state::failed) fail_wards();
}

/// They may belong to other workers, whose locks are not taken under this one's.
void endpoint_observers::fail_wards() {
  while (!wards_.empty()) {
    std::shared_ptr<endpoint_core> ward = wards_.back().lock();
    if (ward) {
      ward->worker().post_work(
          [each = wards_.back(), why = connection_.why_ended(), words = connection_.words()] {
            const std::shared_ptr<endpoint_core> kept = each.lock();
            if (kept) kept->fail(why, "the connection that watches this one ended: " + words);
          });
      // Not here: it may be the last hold on the connection, and end it.
      connection_.worker().queue_handler([kept = std::move(ward)] {});
    }
    wards_.pop_back();
  }
}

}  // namespace ucx::detail
