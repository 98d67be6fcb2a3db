#include "rpc/call_operation.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "message/message_link.hpp"
#include "message/send_operation.hpp"
#include "rpc/call_exchange.hpp"
#include "rpc/peer_clocks.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// As `request::cancel()`, under the lock.
void cancel(const request& started) noexcept {
  operation* const given_up = core_access::get(started);
  if (given_up != nullptr && !given_up->done()) given_up->give_up(errc::canceled);
}

/// Returns the operation of a send, unless it failed before it began.
const send_operation* send_of(const request& started) noexcept {
  return dynamic_cast<const send_operation*>(core_access::get(started));
}

}  // namespace

call_exchange& call_operation::exchange() const { return worker().part<call_exchange>(); }

void call_operation::begin(const std::shared_ptr<endpoint_core>& over, const wanted_call& wanted,
                           std::chrono::nanoseconds timeout, std::shared_ptr<call_result> result,
                           std::shared_ptr<std::size_t> under_way, call_windows windows) {
  worker_core& of = over->worker();
  name_ = wanted.called.name();
  signature_ = wanted.called.signature().text();
  text_.clear();
  message_ = 0;
  may_be_sent_ = false;
  is_announced_ = false;
  size_ = wanted.arguments.size();
  is_over_ = false;
  // Nothing of a call that throws is left.
  std::unique_ptr<alarm> look;
  has_windows_ = !windows.empty();
  cause_.clear();
  if (has_windows_ || !wanted.parts.empty()) {
    look = std::make_unique<alarm>(of, [this] { end_if_unused(); });
    of.expect_handler();
  }
  try {
    number_ = of.part<call_exchange>().add(*this);
    try {
      windows.grant(*over);
    } catch (...) {
      of.part<call_exchange>().remove(*this);
      throw;
    }
  } catch (...) {
    if (look) of.forgo_handler();
    throw;
  }
  look_ = std::move(look);
  result_ = std::move(result);
  under_way_ = std::move(under_way);
  stamps_ = wanted.stamps;
  landing_ = wanted.landing;
  windows_ = std::move(windows);
  ++*under_way_;
  start(of, over, of.deadline_after(timeout));
  if (!has_windows_) over->messages().call_began();
  of.tick_soon();  // the peer's heart is watched from here on
  retain();        // it may end here
  try {
    send(wanted);
  } catch (const std::bad_alloc&) {  // it has begun, and ends as any other
    finish(make_error_code(was_sent() ? errc::call_outcome_unknown : errc::no_memory));
  }
  release();
}

std::chrono::nanoseconds call_operation::time_left() const noexcept {
  if (deadline() == clock::time_point::max()) return std::chrono::nanoseconds::max();
  const std::chrono::nanoseconds left = deadline() - worker().api().now();
  return std::max(left, std::chrono::nanoseconds(1));
}

void call_operation::send(const wanted_call& wanted) {
  endpoint_core& over = *endpoint();
  if (const std::error_code unusable = over.status()) return finish(unusable);
  const bool is_timed = deadline() != clock::time_point::max();
  call_message made = encode_request(
      {.kind = wanted.kind,
       .number = number_,
       .left = is_timed ? time_left() : std::chrono::nanoseconds(),
       .hash = wanted.called.signature().hash(),
       .function = wanted.number,
       .name = wanted.kind == call_kind::bound ? std::string_view() : std::string_view(name_),
       .arguments = wanted.arguments},
      wanted.parts);
  if (stamps_) add_clock(made, stamps_->now());
  send_over(over, std::move(made));
  if (is_over_ || send_.done()) return;
  send_.then([kept = worker().weak_from_this(), number = number_](std::error_code outcome) {
    const std::shared_ptr<worker_core> of = kept.lock();
    if (!of) return;
    const std::lock_guard guard(of->lock());
    of->part<call_exchange>().sent(number, outcome);
  });
}

/// Leaves `send_` where it does not go at once.
void call_operation::send_over(endpoint_core& over, call_message what) {
  outgoing_messages& outgoing = over.messages().outgoing();
  const bool has_parts = !what.parts.empty();
  if (has_parts) call_exchange::tell_parts(what);
  is_announced_ = !outgoing.goes_whole(what.length() + what.head().size());
  if (has_parts) lent_ = std::make_shared<const call_message>(std::move(what));
  may_be_sent_ = true;  // where the call ends within the send
  is_lending_ = has_parts;
  request sending;
  try {
    const std::shared_ptr<endpoint_core> to = over.shared_from_this();
    sending = has_parts ? call_exchange::lend(to, call_messages, *lent_, time_left())
                        : call_exchange::send(to, call_messages, std::move(what), time_left());
  } catch (...) {  // it has taken nothing
    may_be_sent_ = is_lending_ = false;
    throw;
  }
  is_lending_ = false;
  if (is_over_ && !has_parts) return call_exchange::leave(std::move(sending));
  if (is_over_) {
    send_ = std::move(sending);
    cancel(send_);
    if (!done()) end_if_unused();
    return;
  }
  const operation* const started = core_access::get(sending);
  if (started != nullptr && !started->done()) {
    send_ = std::move(sending);
    return;
  }
  const send_operation* const ended = send_of(sending);
  may_be_sent_ = started == nullptr || (ended != nullptr && ended->was_said());
  if (may_be_sent_) message_ = outgoing.last_number();
  if (const std::error_code failed = sending.error()) send_failed(failed);
}

/// Returns whether the peer may have some of it.
bool call_operation::was_sent() const noexcept {
  if (core_access::get(send_) == nullptr) return may_be_sent_;
  const send_operation* const sending = send_of(send_);
  return sending != nullptr && sending->was_said();
}

bool call_operation::was_refused(std::uint64_t message) const noexcept {
  const send_operation* const sending = send_of(send_);
  if (sending == nullptr) return may_be_sent_ && message_ == message;
  return sending->was_said() && sending->number() == message;
}

void call_operation::send_failed(std::error_code why) noexcept {
  if (is_over_) return;
  if (why == errc::no_such_handler) {
    return finish(
        why, if_there_is_memory([&] { return "calling " + name_ + ": the peer serves no calls"; }));
  }
  // The peer ended its receive, and does not run it.
  if (why == errc::message_refused || !was_sent()) return finish(why);
  end_unknown(why);
}

/// The function may have run, and the peer's word is not taken for it.
void call_operation::end_unknown(std::error_code why) noexcept {
  if (why == errc::timed_out || why == errc::canceled) return finish(why);
  finish(make_error_code(errc::call_outcome_unknown),
         if_there_is_memory([&] { return "calling " + name_ + ": " + why.message(); }));
}

void call_operation::memory_refused() noexcept {
  if (is_over_) return;
  cause_ = errc::no_space;
  result_->cause = cause_;
  finish(make_error_code(errc::call_failed), if_there_is_memory([&] {
           return "calling " + name_ + ": its result has more memory than call_options::max_memory";
         }));
}

void call_operation::answered(std::span<const std::byte> head, std::vector<std::byte> body,
                              std::vector<landed_part> parts) {
  if (is_over_) return;
  result_->parts = std::move(parts);  // what is not used goes with the request
  const auto answer = decode_answer({head, body});
  if (!answer) {
    return finish(answer.why().code, "reading the answer of " + name_ + ": " + answer.why().text);
  }
  if (stamps_) result_->clock = peer_clocks::came(*stamps_, head, *endpoint());
  if (answer->failure.outcome != call_outcome::done) {
    failure failed = failure_at_caller(answer->failure, name_, signature_);
    result_->cause = cause_ = failed.cause;
    return finish(failed.code, std::move(failed.text));
  }
  result_->bytes = std::move(body);
  finish({});
}

void call_operation::answer_lost(std::error_code why) noexcept {
  if (!is_over_) end_unknown(why);
}

/// Once for each end.
void call_operation::finish(std::error_code outcome, std::string text) noexcept {
  if (is_over_) return;
  is_over_ = true;
  outcome_ = outcome;
  text_ = std::move(text);
  exchange().remove(*this);
  --*under_way_;
  if (const std::shared_ptr<request> receiving = receiving_.lock()) cancel(*receiving);
  // A call that waits for room is not sent any more, and an announced one is withdrawn. Another one
  // has been given to UCX: its bytes are its own.
  if (is_announced_ || !was_sent() || lent_) cancel(send_);
  if (!lent_) call_exchange::leave(std::move(send_));
  retain();
  windows_.revoke(*endpoint());
  if (!done()) end_if_unused();
  if (!done()) {  // in use: the peer has so long
    move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
    worker().tick_soon();
  }
  release();
}

/// Returns whether the peer gets, or gives, no bytes of a window, and UCX has none of the caller's.
bool call_operation::is_unused() const noexcept {
  return windows_.idle() && !is_lending_ && (!lent_ || send_.done());
}

void call_operation::end_if_unused() noexcept {
  if (!is_unused()) {
    return look_->set(after(worker().api().now(), std::chrono::milliseconds(1)));
  }
  if (look_) look_->call_off();
  windows_.close();
  call_exchange::leave(std::move(send_));
  if (!has_windows_) {
    endpoint()->messages().call_ended();
    endpoint()->closing().look();
  }
  if (keeps_ || lent_) {  // they go behind the lock: buffers are the program's
    worker().queue_expected_handler([gone = std::move(keeps_), sent = std::move(lent_)] {});
  } else if (look_) {
    worker().forgo_handler();
  }
  result_.reset();
  complete(outcome_);
}

void call_operation::look() noexcept {
  if (is_over_ && !done()) end_if_unused();
}

void call_operation::left() noexcept { keeps_ = endpoint()->weak_from_this().lock(); }

/// Once the peer has had the time to let go of the windows, and did not, the connection has to.
void call_operation::linger() noexcept {
  const clock::time_point now = worker().api().now();
  if (now < deadline()) return;
  move_deadline(after(now, worker().options().heartbeat_timeout));
  endpoint()->fail(make_error_code(errc::connection_reset),
                   if_there_is_memory("the peer did not let go of the memory of a call"));
}

void call_operation::give_up(errc why) noexcept {
  if (is_over_) return linger();
  if (was_sent()) {
    call_exchange::post(endpoint()->shared_from_this(), call_messages, encode_cancel(number_));
  }
  finish(make_error_code(why));
}

void call_operation::connection_failed(std::error_code why) noexcept {
  if (done()) return;
  if (is_over_) return end_if_unused();
  // Closed on this side: the caller knows.
  const bool is_unknown = was_sent() && why != errc::canceled;
  finish(is_unknown ? make_error_code(errc::call_outcome_unknown) : why);
}

std::string call_operation::describe() const {
  if (done() && !text_.empty()) return text_;
  const endpoint_core* const over = endpoint();
  return "calling " + name_ + (over != nullptr ? " of " + over->peer_name() : std::string());
}

void call_operation::recycle() noexcept {
  result_.reset();
  under_way_.reset();
  stamps_.reset();
  receiving_.reset();
  look_.reset();
  landing_ = {};
  worker().pool_of<call_operation>().give_back(this);
}

}  // namespace ucx::detail
