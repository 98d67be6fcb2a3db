#include "connection/endpoint_core.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "base/retirement.hpp"
#include "connection/client_ledger.hpp"
#include "connection/connection_table.hpp"
#include "connection/connection_words.hpp"
#include "connection/control_queue.hpp"
#include "connection/frame_sender.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "wire/parcel.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

connection_stage stage_of(endpoint_state state, bool dials) noexcept {
  if (state != endpoint_state::connecting) return connection_stage::standing;
  return dials ? connection_stage::dialing : connection_stage::greeting;
}

/// The smaller of what two sides said, where both said something.
std::size_t smaller(std::uint64_t ours, std::uint64_t theirs) noexcept {
  return static_cast<std::size_t>(theirs == 0 ? ours : std::min(ours, theirs));
}

bool is_watched(const worker_core& worker, error_handling_mode asked) {
  return asked == error_handling_mode::automatic ? !worker.context().same_host_only()
                                                 : asked == error_handling_mode::peer;
}

connection_terms terms_of(const worker_core& worker, const endpoint_options& options) {
  return options.terms ? *options.terms : worker.options().terms;
}

}  // namespace

endpoint_core::endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive,
                             role side, endpoint_options&& options)
    : worker_(worker),
      keep_alive_(std::move(keep_alive)),
      role_(side),
      plain_(options.plain_peer),
      speaks_(worker.context().has(feature::am) && !options.plain_peer),
      number_(worker.connections().next_number()),
      ucx_(worker, *this, is_watched(worker, options.error_handling)),
      messages_(worker.connections().make_messages(*this)),
      link_(messages_->link()),
      session_(*this, *messages_, terms_of(worker, options)),
      observers_(*this, *messages_, std::move(options.events)),
      liveness_(*this, worker.options().heartbeat_interval, worker.options().heartbeat_timeout) {}

result<std::shared_ptr<endpoint_core>> endpoint_core::make(worker_core& worker,
                                                           std::shared_ptr<worker_core> keep_alive,
                                                           ucp_ep_params_t& params, role side,
                                                           endpoint_options options) {
  worker.connections().make_room();
  reserved_share share;
  // The last reference may go inside UCX's callback, where an endpoint can not be closed.
  std::shared_ptr<endpoint_core> made = share.take(
      new endpoint_core(worker, std::move(keep_alive), side, std::move(options)), retirement());
  const bool waits = made->speaks() || made->is_plain();
  if (!waits) {
    made->reach(endpoint_state::closed);  // as long as nothing is made
    made->observers_.established();
  }
  // From here on nothing is thrown: UCX may have what `params` brings.
  const ucs_status_t status = made->ucx_.make(params);
  if (status != UCS_OK) {
    if (made->state_ != endpoint_state::closed) made->reach(endpoint_state::closed);
    return detail::failure{make_error(status), if_there_is_memory([status, &worker] {
                             return worker.context().words_of(status) +
                                    rdma_advice(worker.api(), status, worker.context().resources());
                           }),
                           worker.context().ucx_status_of(status)};
  }
  worker.connections().add(*made);
  if (!waits) made->reach(endpoint_state::ready);
  return made;
}

/// Called when the connection has no holder any more: it is closed, and for that held once more.
void endpoint_core::retire() noexcept {
  if (is_inherited()) return;  // the parent's
  if (worker_.inside_ucx()) return owe(to_retire);
  std::unique_lock guard(worker_.lock());
  const bool open = state_ == endpoint_state::connecting || state_ == endpoint_state::ready;
  // Under the lock, where `fail()` looks for a share to hold.
  const std::shared_ptr<endpoint_core> again =
      open ? again_.take(this, retirement()) : std::shared_ptr<endpoint_core>();
  guard.unlock();
  if (again) {
    closing_.close(worker_.in_handler() ? close_mode::abort : close_mode::flush);
    return;  // and retires for good
  }
  // The worker goes after the endpoint, if this was the last to keep it.
  const std::shared_ptr<worker_core> kept = std::move(keep_alive_);
  const std::shared_ptr<endpoint_core> watching = observers_.keep(nullptr);
  guard.lock();
  observers_.drop_handlers();
  drop();
  const bool ended = over();
  if (!ended) worker_.connections().deferred().defer_destroy(*this);
  guard.unlock();
  if (ended) delete this;
}

endpoint_core::~endpoint_core() {
  const std::lock_guard guard(worker_.lock());
  if (owed_ != 0) worker_.connections().deferred().remove_owing(*this);
  worker_.connections().deferred().remove_left(*this);
  worker_.connections().remove(*this);
  messages_->end();
  control_.end(errc::closed);
}

std::error_code endpoint_core::status() const noexcept {
  if (is_inherited()) return errc::forked_child;
  if (state_ == endpoint_state::closed || closing_.has_begun()) return errc::closed;
  return state_ == endpoint_state::failed ? error_ : std::error_code();
}

std::error_code endpoint_core::failure() const noexcept {
  return state_ == endpoint_state::failed ? error_ : std::error_code();
}

std::string endpoint_core::words() const {
  const std::lock_guard guard(worker_.lock());
  return words_;
}

std::optional<int> endpoint_core::ucx_status_of(std::error_code why) const noexcept {
  const std::lock_guard guard(worker_.lock());
  return why == error_ ? ucx_status_ : std::optional<int>();
}

std::string endpoint_core::peer_name() const {
  const std::lock_guard guard(worker_.lock());
  if (!peer_.empty()) return to_string(peer_);
  if (plain_) return "a plain UCX peer";
  char text[32];
  std::snprintf(text, sizeof text, "session %016llx",
                static_cast<unsigned long long>(session_.number()));
  return text;
}

connection_state endpoint_core::public_state() const noexcept {
  if (state_ == endpoint_state::closed) return connection_state::closed;
  if (closing_.has_begun()) return connection_state::closing;
  if (state_ == endpoint_state::failed) return connection_state::failed;
  return state_ == endpoint_state::ready ? connection_state::active : connection_state::connecting;
}

connection_report endpoint_core::report() const {
  connection_report made;
  made.id = number_;
  made.peer = peer_;
  if (state_ != endpoint_state::ready) return made;
  const context_core& context = worker_.context();
  const introduction& theirs = session_.theirs();
  made.local = local();
  made.peer_name = theirs.name;
  made.peer_info = theirs.info;
  // A peer that says nothing of itself could do what this side can.
  const auto common =
      static_cast<unsigned>(context.features()) &
      (theirs.features == feature::none ? ~0U : static_cast<unsigned>(theirs.features));
  made.features = static_cast<feature>(common);
  made.transports = ucx_.transports();
  made.segment_size = smaller(context.segment_size(), theirs.segment);
  made.max_eager_size = messages_->longest_at_once(detects_failure(), pieces_.write);
  made.max_header_size = smaller(worker_.sender().longest_header(),
                                 frame_sender::header_within(theirs.largest_header));
  made.zero_copy = any_is_rdma(made.transports);
  if (!context.is_of_ucx()) {
    made.why_not_rma = "the connection goes over sockets, without UCX";
  } else if (!includes(made.features, feature::rma)) {
    made.why_not_rma = "one of the contexts was made without feature::rma";
  } else if (!any_has_rma(made.transports) && (detects_failure() || !context.same_host_only())) {
    made.why_not_rma = why_no_rma(made.transports, context.resources(), rdma_told_by(theirs));
  }
  made.native_rma = made.why_not_rma.empty();
  made.long_messages = messages_->long_messages();
  made.watched = detects_failure() || liveness_.watches_process();
  made.encrypted = context.is_by_tls();
  if (const auto peer = ucx_.identity()) made.identity = *peer;
  return made;
}

connection_end endpoint_core::end() const {
  return {number_, peer_, error_, words_, messages_->unsent(), ucx_status_};
}

void endpoint_core::log(log_level level, const char* what, const std::string& more) const {
  logger& log = worker_.context().log();
  if (!log.writes(level)) return;
  std::string line = "connection ";
  line.append(std::to_string(number_)).append(role_ == role::initiator ? " to " : " from ");
  line.append(peer_name()).append(": ").append(what).append(more);
  log.write(level, line);
}

void endpoint_core::tell_of_copies(ucs_status_t status) {
  if (std::exchange(told_of_copies_, true)) return;
  try {
    log(log_level::warning,
        "what is sent goes in small pieces, because UCX can not register its bytes: ",
        detail::words(status) + "; " + words_of_lock_limit());
  } catch (const std::bad_alloc&) {  // a line of the log is not worth the connection
  }
}

std::error_code endpoint_core::wait_connected() {
  if (worker_.in_handler() && state_ == endpoint_state::connecting) return errc::would_deadlock;
  // tick() fails the connection at its deadline.
  worker_.wait_until(clock::time_point::max(),
                     [&] { return state_ != endpoint_state::connecting; });
  const std::lock_guard guard(worker_.lock());
  return status();
}

void endpoint_core::establish(std::uint64_t room) {
  const introduction& theirs = session_.theirs();
  // A peer that does not tell its segment may have UCX's: longer ones would end it (1.13.1).
  const std::size_t ours = worker_.context().segment_size();
  pieces_ = piece_sizes::of_segment(std::min<std::size_t>(ours, theirs.segment));
  const bool same_host = ucx_.shares_memory();
  // Where a header has room as a whole, so have a header and what comes with it.
  const std::size_t whole = worker_.ucx().largest_header();
  if (same_host && whole > parcel::size) pieces_.fit_elements(whole - parcel::size);
  reach(endpoint_state::ready);
  if (any_is_rdma(worker_.context().resources())) {
    hardware_ = if_there_is_memory([this] { return rdma_of(ucx_.transports()); });
  }
  if (same_host) liveness_.watch_process(theirs.process);
  operations_.send_queued();
  messages_->open(room, same_host);
  log_established(same_host);
  observers_.established();
}

/// UCX takes TCP in silence, also where it does not reach hardware that both sides have.
void endpoint_core::log_established(bool same_host) const {
  const introduction& theirs = session_.theirs();
  const std::vector<std::string>& resources = worker_.context().resources();
  const bool may_fall_back = !same_host && theirs.fetches && any_has_rma(resources);
  const log_level least = may_fall_back ? log_level::warning : log_level::info;
  if (!worker_.context().log().writes(least)) return;
  const std::vector<std::string> lanes = ucx_.transports();
  const bool falls_back = may_fall_back && !any_has_rma(lanes);
  log(falls_back ? log_level::warning : log_level::info, "established",
      words_of_established(theirs, lanes, resources, messages_->long_messages()));
}

void endpoint_core::answer_started(std::uint64_t bytes) noexcept {
  ++answers_;
  if (account_ && account_->counts_bytes()) account_->sends(bytes);
}

void endpoint_core::answer_ended(std::uint64_t bytes) noexcept {
  --answers_;
  if (account_ && account_->counts_bytes()) account_->sent(bytes);
}

void endpoint_core::send(const frame& sent) { worker_.sender().send(*this, sent); }

void endpoint_core::reply(const frame& answer, std::span<const std::byte> payload) {
  if (handle() == nullptr || !quota_.may_reply()) return;
  worker_.sender().send(*this, answer, payload, frame_sender::kind::reply);
}

void endpoint_core::note(ucs_status_t status) {
  if (words_.empty()) {
    words_ = if_there_is_memory([&] { return worker_.context().words_of(status); });
  }
}

void endpoint_core::lost(ucs_status_t status) noexcept {
  if (ucx_.is_left()) return owe(to_drop);
  if (handle() == nullptr || state_ == endpoint_state::failed || losing_) return;
  losing_ = true;
  const bool dials = role_ == role::initiator && !peer_.empty() && !session_.is_hello_sent();
  try {
    worker_.defer([self = weak_from_this(), status, dials] {
      const std::shared_ptr<endpoint_core> endpoint = self.lock();
      if (!endpoint) return;
      if (endpoint->session_.is_leaving()) return endpoint->part();
      const errc why =
          endpoint->worker_.context().loss_of(status, stage_of(endpoint->state_, dials));
      endpoint->fail(make_error_code(why), if_there_is_memory([&] {
                       const bool stood = endpoint->state_ != endpoint_state::connecting;
                       return words_of_loss(endpoint->worker_, status, endpoint->hardware_, stood,
                                            dials);
                     }),
                     status);
    });
  } catch (const std::bad_alloc&) {
    session_.part_soon(make_error_code(worker_.context().loss_of(status, stage_of(state_, dials))));
  }
}

void endpoint_core::wired_up() noexcept {
  try {
    worker_.defer([weak = weak_from_this()] {
      const std::shared_ptr<endpoint_core> kept = weak.lock();
      if (kept) kept->session_.wired_up();
    });
  } catch (const std::bad_alloc&) {
    session_.part_soon(make_error_code(errc::no_memory));
  }
}

void endpoint_core::blame(errc why, const char* words) noexcept {
  try {
    worker_.defer([weak = weak_from_this(), why, words] {
      const auto self = weak.lock();
      if (self) self->fail(make_error_code(why), if_there_is_memory(words));
    });
  } catch (const std::bad_alloc&) {
    session_.part_soon(make_error_code(why));
  }
}

/// The end is what the peer that leaves has called it.
void endpoint_core::part() { fail(session_.why_leaving().code, session_.why_leaving().text); }

void endpoint_core::process_ended() {
  losing_ = true;  // no peer is there to be told
  if (session_.is_leaving()) return part();
  fail(make_error_code(errc::connection_reset), if_there_is_memory("the peer's process has ended"));
}

void endpoint_core::owe(unsigned what) noexcept {
  if (owed_ == 0) worker_.connections().deferred().add_owing(*this);
  owed_ |= what;
}

bool endpoint_core::pay() noexcept {
  const unsigned owed = std::exchange(owed_, 0);
  if ((owed & to_drop) != 0) drop_left();
  if ((owed & to_retire) != 0) {
    retire();
    return true;
  }
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  if (!kept) return true;  // it retires already
  if ((owed & to_part) != 0) part();
  if ((owed & to_tell) != 0) {
    observers_.say_end();
    if (observers_.has_to_say_end()) {
      owe(to_tell | (owed & (to_send | to_close)));
      return false;
    }
  }
  try {
    if ((owed & to_send) != 0) {
      operations_.send_queued();
      messages_->send_queued();
    }
  } catch (const std::bad_alloc&) {
    fail(make_error_code(errc::no_memory), if_there_is_memory("no memory for what waits"));
  }
  try {
    if ((owed & to_close) != 0) closing_.step();
    return true;
  } catch (const std::bad_alloc&) {  // tick() looks again, and what closes it has a deadline
    worker_.tick_soon();
    return false;
  }
}

void endpoint_core::fail(std::error_code why, const std::string& words,
                         std::optional<int> ucx_status) {
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) return;
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  const bool was_ready = state_ == endpoint_state::ready;
  reach(endpoint_state::failed);
  error_ = why;
  ucx_status_ = worker_.context().is_of_ucx() ? ucx_status : std::nullopt;
  words_ = if_there_is_memory([&] { return words; });
  liveness_.stop();
  const bool expected = why == errc::canceled || why == errc::closed_by_peer;
  const auto write_down = [&] {
    log(expected ? log_level::info : log_level::warning, "ended: ", words);
    return std::string();
  };
  if_there_is_memory(write_down);
  fail_operations(why);
  // UCX keeps a socket that the peer opened, so a peer that is still there has to be told.
  const auto tell_peer = [&] {
    if (was_ready && !losing_ && !session_.is_leaving()) {
      session_.say_bye(make_error_code(errc::connection_reset));
    }
    return std::string();
  };
  if_there_is_memory(tell_peer);
  start_drop();
  files_.drop();
  worker_.connections().turns().drop(this);
  control_.end(why);
  observers_.ended(was_ready);
  // It was left with UCX's endpoint.
  if (observers_.has_to_say_end()) worker_.connections().remember(*this);
  closing_.look();
}

void endpoint_core::fail_operations(std::error_code why) {
  operations_.fail(why);
  messages_->connection_failed();
  worker_.connection_failed(*this, why);
}

void endpoint_core::cancel_operations() noexcept {
  operations_.cancel();
  worker_.outstanding().cancel(this);
}

bool endpoint_core::answers_pending() const noexcept {
  return !operations_.empty() || messages_->sends_pending();
}

clock::time_point endpoint_core::tick(clock::time_point now) {
  closing_.look();  // where it is closing: there may have been no memory to look
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) {
    if (!observers_.has_to_say_end()) return clock::time_point::max();
    observers_.say_end();
    if (observers_.has_to_say_end()) return now;
    worker_.connections().remove(*this);
    return clock::time_point::max();
  }
  if (state_ == endpoint_state::connecting || session_.is_leaving()) {
    if (now < session_.deadline()) return session_.deadline();
    if (session_.is_leaving()) {
      part();
    } else {
      fail(make_error_code(errc::timed_out),
           if_there_is_memory(plain_ ? "UCX did not connect to the peer in time"
                                     : "the peer did not answer in our protocol in time"));
    }
    return clock::time_point::max();
  }
  const bool told = messages_->retell_room();
  // The look may find it lost, which may end the connection, object and all: nothing behind it.
  const clock::time_point next =
      liveness_.look(now, operations_.awaits_peer() || messages_->awaits_peer());
  return told ? next : now;
}

void endpoint_core::closed() noexcept {
  drop_keys();
  reach(endpoint_state::closed);
  worker_.connections().remove(*this);
}

}  // namespace ucx::detail
