#include "connection/endpoint_core.hpp"

#include <cstdio>
#include <new>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/channel.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/control_turns.hpp"
#include "connection/message_sender.hpp"
#include "connection/peer_question.hpp"
#include "ucp/status.hpp"
#include "worker/process_watcher.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many copies of pieces that were given up may wait for a peer to take them: four MiB.
constexpr unsigned most_copies_left = 64;

connection_stage stage_of(endpoint_state state, bool dials) noexcept {
  if (state != endpoint_state::connecting) return connection_stage::standing;
  return dials ? connection_stage::dialing : connection_stage::greeting;
}

/// What of a connection's end is still to be said, and how.
constexpr unsigned to_users = 1;
constexpr unsigned to_observer = 2;
constexpr unsigned to_wards = 4;
constexpr unsigned was_there = 8;

/// A listener that does not want a connection rejects it without a word, and UCX does the same, or
/// drops it, or can not read the answer, where it can not make one with the peer's: nothing tells
/// which it was.
std::string words_of_loss(ucp_api& api, ucs_status_t status, bool dials) {
  std::string text = "UCX: " + words(status);
  const bool listens = status == UCS_ERR_REJECTED || status == UCS_ERR_CONNECTION_RESET ||
                       status == UCS_ERR_INVALID_PARAM;
  if (!dials || !listens) return text;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  api.get_version(&major, &minor, &patch);
  return text + "; the peer's may be of a version that does not connect with this one's, " +
         std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace

endpoint_core::endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive,
                             role side, endpoint_options options)
    : worker_(worker),
      keep_alive_(std::move(keep_alive)),
      role_(side),
      options_(std::move(options)),
      number_(worker.connections().next_number()),
      terms_(options_.terms ? *options_.terms : worker.options().terms),
      heartbeat_(worker.options().heartbeat_interval, worker.options().heartbeat_timeout),
      messages_(worker.connections().make_messages(*this)),
      link_(messages_->link()) {
  options_.terms.reset();
  const bool watched = options_.failure == peer_failure::automatic
                           ? !worker.context().same_host_only()
                           : options_.failure == peer_failure::detected;
  detects_failure_ = watched;
}

std::shared_ptr<endpoint_core> endpoint_core::make(worker_core& worker,
                                                   std::shared_ptr<worker_core> keep_alive,
                                                   ucp_ep_params_t& params, role side,
                                                   endpoint_options options, std::error_code& ec) {
  worker.connections().make_room();
  reserved_share share;
  // The last reference may go inside UCX's callback, where an endpoint can not be closed.
  const std::shared_ptr<endpoint_core> made =
      share.take(new endpoint_core(worker, std::move(keep_alive), side, std::move(options)),
                 [](endpoint_core* last) { last->retire(); });
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode =
      made->detects_failure_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  if (made->detects_failure_) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler.cb = &endpoint_core::on_ucx_error;
    params.err_handler.arg = made.get();
  }
  if (!worker.context().has(feature::am)) {
    made->state_ = endpoint_state::closed;  // as long as nothing is made
    made->queue_tell(event::established);
  }
  // From here on nothing is thrown: UCX may have what `params` brings.
  const ucs_status_t status = worker.api().ep_create(worker.handle(), &params, &made->handle_);
  if (status != UCS_OK) {
    made->handle_ = nullptr;
    made->words_ = if_there_is_memory([status] { return detail::words(status); });
    made->state_ = endpoint_state::closed;
    ec = make_error(status);
    return nullptr;
  }
  worker.connections().add(*made);
  if (!worker.context().has(feature::am)) made->state_ = endpoint_state::ready;
  return made;
}

/// What happens when nobody holds the connection any more: it is closed, and for that held once
/// more.
void endpoint_core::retire() noexcept {
  if (is_forked_child()) return;  // the parent's
  if (worker_.inside_ucx()) return owe(to_retire);
  std::unique_lock guard(worker_.lock());
  const bool open = state_ == endpoint_state::connecting || state_ == endpoint_state::ready;
  guard.unlock();
  if (open) {
    const std::shared_ptr<endpoint_core> again =
        again_.take(this, [](endpoint_core* last) { last->retire(); });
    std::error_code ignored;
    close(worker_.in_handler() ? close_mode::abort : close_mode::flush, ignored);
    return;  // and retires for good
  }
  // The worker goes after the endpoint, if this was the last to keep it.
  const std::shared_ptr<worker_core> kept = std::move(keep_alive_);
  const std::shared_ptr<endpoint_core> watching = std::move(watched_by_);
  guard.lock();
  drop_handlers();
  drop();
  const bool ended = over();
  if (!ended) worker_.connections().bury(*this);
  guard.unlock();
  if (ended) delete this;
}

endpoint_core::~endpoint_core() {
  const std::lock_guard guard(worker_.lock());
  if (owed_ != 0) worker_.connections().remove_owing(*this);
  worker_.connections().remove(*this);
  messages_->end();
  if (receiver_ != nullptr) receiver_->ended(errc::closed);
}

std::error_code endpoint_core::status() const noexcept {
  if (is_forked_child()) return errc::forked_child;
  if (state_ == endpoint_state::closed || taking_leave_) return errc::closed;
  return state_ == endpoint_state::failed ? error_ : std::error_code();
}

std::error_code endpoint_core::failure() const noexcept {
  return state_ == endpoint_state::failed ? error_ : std::error_code();
}

std::string endpoint_core::words() const {
  const std::lock_guard guard(worker_.lock());
  return words_;
}

std::string endpoint_core::peer_name() const {
  const std::lock_guard guard(worker_.lock());
  if (!peer_.empty()) return to_string(peer_);
  char text[32];
  std::snprintf(text, sizeof text, "session %016llx", static_cast<unsigned long long>(session_));
  return text;
}

void endpoint_core::on_ucx_error(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<endpoint_core*>(self)->lost(status);
}

void endpoint_core::note(ucs_status_t status) {
  if (words_.empty()) words_ = "UCX: " + detail::words(status);
}

void endpoint_core::lost(ucs_status_t status) noexcept {
  if (handle_ == nullptr || state_ == endpoint_state::failed || losing_) return;
  losing_ = true;
  const bool dials = role_ == role::initiator && !peer_.empty() && !hello_sent_;
  try {
    worker_.defer([self = weak_from_this(), status, dials] {
      const std::shared_ptr<endpoint_core> endpoint = self.lock();
      if (!endpoint) return;
      if (endpoint->leaving_)
        return endpoint->fail(endpoint->leaving_why_, endpoint->leaving_words_);
      const errc why = to_loss(status, stage_of(endpoint->state_, dials));
      endpoint->fail(make_error_code(why), if_there_is_memory([&] {
                       return words_of_loss(endpoint->worker_.api(), status, dials);
                     }));
    });
  } catch (const std::bad_alloc&) {
    fail_soon(make_error_code(to_loss(status, stage_of(state_, dials))));
  }
}

void endpoint_core::blame(errc why, const char* words) noexcept {
  try {
    worker_.defer([weak = weak_from_this(), why, words] {
      const auto self = weak.lock();
      if (self) self->fail(make_error_code(why), if_there_is_memory(words));
    });
  } catch (const std::bad_alloc&) {
    fail_soon(make_error_code(why));
  }
}

/// As a peer that has left: by the clock, which needs no memory.
void endpoint_core::fail_soon(std::error_code why) noexcept {
  if (!leaving_) leaving_why_ = why;
  leaving_ = true;
  connect_deadline_ = clock::time_point::min();
  worker_.tick_soon();
}

void endpoint_core::owe(unsigned what) noexcept {
  if (owed_ == 0) worker_.connections().add_owing(*this);
  owed_ |= what;
}

bool endpoint_core::pay() noexcept {
  const unsigned owed = std::exchange(owed_, 0);
  if ((owed & to_retire) != 0) {
    retire();
    return true;
  }
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  if (!kept) return true;  // it retires already
  if ((owed & to_part) != 0) fail(leaving_why_, leaving_words_);
  try {
    if ((owed & to_send) != 0) {
      operations_.send_queued();
      messages_->send_queued();
    }
  } catch (const std::bad_alloc&) {
    fail(make_error_code(errc::no_memory), if_there_is_memory("no memory for what waits"));
  }
  try {
    if ((owed & to_close) != 0 && closer_ != nullptr) closer_->step();
    return true;
  } catch (const std::bad_alloc&) {  // tick() looks again, and what closes it has a deadline
    worker_.tick_soon();
    return false;
  }
}

void endpoint_core::fail(std::error_code why, const std::string& words) {
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) return;
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  const bool was_ready = state_ == endpoint_state::ready;
  state_ = endpoint_state::failed;
  error_ = why;
  words_ = if_there_is_memory([&] { return words; });
  process_.reset();
  const bool expected = why == errc::canceled || why == errc::closed_by_peer;
  const auto write_down = [&] {
    log(expected ? log_level::info : log_level::warning, "ended: ", words);
    return std::string();
  };
  if_there_is_memory(write_down);
  fail_operations(why);
  // UCX keeps a socket that the peer opened, so a peer that is still there has to be told.
  const auto tell_peer = [&] {
    if (was_ready && !losing_ && !leaving_) say_bye(make_error_code(errc::connection_reset));
    return std::string();
  };
  if_there_is_memory(tell_peer);
  start_drop();
  worker_.connections().turns().drop(this);
  if (channel_receiver* receiver = std::exchange(receiver_, nullptr)) receiver->ended(why);
  unsaid_ = to_users | to_observer | (was_ready ? was_there : 0U);
  if (!wards_.empty() && why != errc::canceled) unsaid_ |= to_wards;
  say_end();
  if (unsaid_ != 0) worker_.connections().remember(*this);  // it was left with UCX's endpoint
  look_at_closing();
}

/// Tells of the end whoever has not been told yet; when there is memory for it.
void endpoint_core::say_end() noexcept {
  const event ended = (unsaid_ & was_there) != 0 ? event::closed : event::refused;
  try {
    if ((unsaid_ & to_users) != 0) queue_tell(ended);
    unsaid_ &= ~to_users;
    if ((unsaid_ & to_observer) != 0) tell_observer(ended);
    unsaid_ &= ~to_observer;
    if ((unsaid_ & to_wards) != 0) fail_wards();
    unsaid_ = 0;
  } catch (const std::bad_alloc&) {
    worker_.tick_soon();
  }
}

void endpoint_core::fail_operations(std::error_code why) {
  operations_.fail(why);
  messages_->connection_failed();
  worker_.fail_outstanding_of(*this, why);
}

void endpoint_core::cancel_operations() noexcept {
  operations_.cancel();
  worker_.cancel_outstanding_of(this);
}

bool endpoint_core::answers_pending() const noexcept {
  return !operations_.empty() || messages_->sends_pending();
}

void endpoint_core::copy_left() noexcept {
  if (++copies_left_ == most_copies_left) {
    blame(errc::connection_reset, "the peer does not take what is sent to it");
  }
}

clock::time_point endpoint_core::tick(clock::time_point now) {
  look_at_closing();  // where it is closing: there may have been no memory to look
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) {
    if (unsaid_ == 0) return clock::time_point::max();
    say_end();
    if (unsaid_ != 0) return now;
    worker_.connections().remove(*this);
    return clock::time_point::max();
  }
  if (state_ == endpoint_state::connecting || leaving_) {
    if (now < connect_deadline_) return connect_deadline_;
    if (leaving_) {
      fail(leaving_why_, leaving_words_);
    } else {
      fail(make_error_code(errc::timed_out),
           if_there_is_memory([] { return "the peer did not answer in our protocol in time"; }));
    }
    return clock::time_point::max();
  }
  if (!operations_.awaits_peer() && controls_expected_ == 0 && !messages_->awaits_peer()) {
    heartbeat_.rest();
    return clock::time_point::max();
  }
  switch (heartbeat_.look(now)) {
    case heartbeat::verdict::quiet:
      break;
    case heartbeat::verdict::ask: {
      frame ping;
      ping.code = opcode::ping;
      ping.session = session_;
      send(ping);
      break;
    }
    case heartbeat::verdict::dead:
      fail(make_error_code(errc::connection_reset), if_there_is_memory([this] {
             using std::chrono::milliseconds;
             const auto limit = std::chrono::duration_cast<milliseconds>(heartbeat_.timeout());
             return "no sign of life for " + std::to_string(limit.count()) + " ms";
           }));
      return clock::time_point::max();
  }
  return heartbeat_.next_look();
}

}  // namespace ucx::detail
