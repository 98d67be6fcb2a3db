#include "rpc/call_server_core.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>

#include "base/deadline.hpp"
#include "connection/endpoint_core.hpp"
#include "message/message_exchange.hpp"
#include "rpc/call_exchange.hpp"
#include "rpc/peer_clocks.hpp"
#include "rpc/peer_gate.hpp"
#include "wire/message_number.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bytes behind the head of a call at most.
constexpr std::size_t longest_call_body = call_writer::max_size + call_function::max_name_size;

call_failure too_many() {
  return {.outcome = call_outcome::busy, .text = "this connection has too many calls under way"};
}

call_failure too_much_memory() {
  return {.outcome = call_outcome::busy,
          .text = "the calls of this connection have too much memory beside them"};
}

call_failure too_long() {
  return {.outcome = call_outcome::bad_call,
          .text = "it has more than 1 MiB, or less than its head says"};
}

std::size_t twice(std::size_t count) noexcept {
  return count > std::numeric_limits<std::size_t>::max() / 2 ? count : count * 2;
}

/// Why a call whose arguments could not be received does not run.
call_failure failure_of_receive(std::error_code why) {
  return {.outcome = why == errc::timed_out ? call_outcome::given_up : call_outcome::busy,
          .text = "its arguments could not be received: " + why.message()};
}

std::uint64_t number_of_calls() noexcept { return message_number(call_owner, call_messages); }

}  // namespace

call_server_core::call_server_core(std::shared_ptr<worker_core> worker, const call_table& calls,
                                   call_server_options options)
    : worker_(worker), functions_(calls.functions_), options_(std::move(options)) {}

call_server_core::served_call::served_call(endpoint from)
    : peer(std::move(from)), over(core_access::core(peer)) {}

result<void> call_server_core::listen() {
  const std::shared_ptr<worker_core> worker = worker_.lock();
  if (!worker) return failure{errc::closed, "serving calls for a worker that is gone"};
  if (worker->is_inherited()) return failure{errc::forked_child, "serving calls"};
  if (!worker->context().has(feature::am)) {
    return failure{errc::feature_disabled, "serving calls on a context without feature::am"};
  }
  auto handler =
      std::make_shared<active_handlers::handler>([kept = weak_from_this()](message came) {
        if (const auto self = kept.lock()) self->arrived(std::move(came));
      });
  const std::lock_guard guard(worker->lock());
  active_handlers& handlers = worker->messages().handlers();
  const bool is_free = handlers.claim(number_of_calls(), call_owner);
  if (!is_free || handlers.has(number_of_calls())) {
    return failure{errc::already_exists, "serving calls for a worker that serves calls already"};
  }
  is_of_server_ = worker->control_server() != nullptr;
  handlers.exchange(number_of_calls(), handler);
  return {};
}

void call_server_core::close() noexcept {
  const std::shared_ptr<worker_core> worker = worker_.lock();
  if (!worker) return;
  std::shared_ptr<active_handlers::handler> replaced;  // goes behind the lock
  {
    const std::lock_guard guard(worker->lock());
    worker->messages().handlers().exchange(number_of_calls(), replaced);
  }
  {
    const std::lock_guard guard(noting_);
    is_closed_ = true;
  }
  if (replaced && !worker->in_handler()) {
    worker->wait_until(clock::time_point::max(), [&] {
      return !worker->messages().handlers().is_running(*replaced) && !is_running();
    });
  }
  while (const shared_call left = any_stopped()) give_back(left);
}

/// Takes out one that does not run.
call_server_core::shared_call call_server_core::any_stopped() noexcept {
  const std::lock_guard guard(noting_);
  for (auto at = calls_.begin(); at != calls_.end(); ++at) {
    if (at->second->at == step::running) continue;
    shared_call found = std::move(at->second);
    calls_.erase(at);
    return found;
  }
  return nullptr;
}

std::size_t call_server_core::under_way() const noexcept {
  const std::lock_guard guard(noting_);
  return calls_.size();
}

call_server_core::key call_server_core::key_of(const served_call& call) {
  return {call.over->number(), call.place};
}

/// A handler of the worker: what comes is a call, or does away with one.
void call_server_core::arrived(message&& came) noexcept {
  shared_call call;
  try {
    call = taken(std::move(came));
    if (call) begin(call);
  } catch (...) {  // there is no memory, or what the program gave could not be copied
    if (call) give_back(call);
  }
}

/// Returns the call that came, or nothing.
call_server_core::shared_call call_server_core::taken(message&& came) {
  const auto begun = decode_beginning(came.header());
  if (!begun) return nullptr;  // there is nothing by which it could be answered
  auto call = std::make_shared<served_call>(came.peer());
  if (!call->over) return nullptr;  // the connection is gone
  call->number = begun->number;
  if (begun->kind == static_cast<std::uint8_t>(call_kind::cancel)) {
    cancel(call->over->number(), call->number);
    return nullptr;
  }
  call->is_one_way = (begun->flags & call_is_one_way) != 0;
  if (const auto left = time_left_of(came.header()); left.count() > 0) {
    call->deadline = after(call->over->worker().api().now(), left);
  }
  call->is_stamped = options_.clock != nullptr && clock_of(came.header());
  call->came = std::move(came);
  return call;
}

void call_server_core::begin(const shared_call& call) {
  const auto told = decode_parts(call->came.header());
  if (!told) return refuse(call, failure_of_request(told.why()));
  if (told->count > 0) return begin_beside(call, *told);
  if (call->came.length() > longest_call_body) return refuse(call, too_long());
  if (!call->came.has_payload()) return receive(call, *told, {});
  if (!has_room(*call)) return refuse(call, too_many());
  call->wire = call->came.data();
  run_whole(call);
}

/// Looks at what the head tells before memory is taken for it.
void call_server_core::begin_beside(const shared_call& call, const call_parts& told) {
  const std::uint64_t length = call->came.length();
  if (length < told.total || length - told.total > longest_call_body) {
    return refuse(call, too_long());
  }
  if (told.total > options_.max_memory) {
    return refuse(call, {.outcome = call_outcome::no_room,
                         .text = "it has more than " + std::to_string(options_.max_memory) +
                                 " bytes beside it"});
  }
  const auto asked = decode_request({call->came.header(), {}});
  if (!asked) return refuse(call, failure_of_request(asked.why()));
  const auto where = landing_of(call, *asked);
  if (!where) return run_whole(call);  // which tells why
  if (!where->is_named) {
    return refuse(call, {.outcome = call_outcome::bad_arguments,
                         .text = "its function has no argument that is memory"});
  }
  call->memory = told.total;
  receive(call, told, where->where);
}

std::optional<call_directory::landing> call_server_core::landing_of(const shared_call& call,
                                                                    const asked_call& asked) const {
  peer_gate gate(call->peer);
  return functions_->landing_of(asked, context_of(*call), is_of_server_ ? &gate : nullptr);
}

void call_server_core::run_whole(const shared_call& call) noexcept {
  try {
    run(call);
  } catch (...) {  // as in `arrived`
    give_back(call);
  }
  if (call->at == step::running) end_running(call);  // it was deferred
}

/// Those of one connection stand together.
std::size_t call_server_core::count_of(std::uint64_t connection) const noexcept {
  if (calls_.empty()) return 0;
  const auto first = calls_.lower_bound({connection, 0});
  const auto behind = calls_.lower_bound({connection + 1, 0});
  return static_cast<std::size_t>(std::distance(first, behind));
}

/// Returns how many bytes beside the calls of a connection are here, or on their way.
std::uint64_t call_server_core::memory_of(std::uint64_t connection) const noexcept {
  std::uint64_t sum = 0;
  for (auto at = calls_.lower_bound({connection, 0});
       at != calls_.end() && at->first.first == connection; ++at) {
    sum += at->second->memory;
  }
  return sum;
}

bool call_server_core::has_room(const served_call& call) const noexcept {
  const std::lock_guard guard(noting_);
  return count_of(call.over->number()) < options_.max_calls;
}

/// It is under way from here on, if its connection has less than `most` of them.
call_server_core::room call_server_core::note(const shared_call& call, std::size_t most) {
  const std::lock_guard guard(noting_);
  return place(call, most);
}

/// As `note`, with `noting_`.
call_server_core::room call_server_core::place(const shared_call& call, std::size_t most) {
  if (is_closed_) return room::closed;
  if (call->place != 0) return room::noted;
  const std::uint64_t connection = call->over->number();
  if (count_of(connection) >= most) return room::full;
  if (call->memory != 0 && call->memory > options_.max_memory - memory_of(connection)) {
    return room::memory_full;
  }
  calls_.try_emplace({connection, last_place_ + 1}, call);
  call->place = ++last_place_;
  return room::noted;
}

/// Returns the call, or nothing where the server has ended.
call_server_core::shared_call call_server_core::start_running(const key& which) noexcept {
  const std::lock_guard guard(noting_);
  const auto found = calls_.find(which);
  if (found == calls_.end() || is_closed_) return nullptr;
  found->second->at = step::running;
  ++running_;
  return found->second;
}

/// `call` is over, or its answer goes, or comes later: not any more where the server has ended
/// meanwhile.
void call_server_core::end_running(const shared_call& call) noexcept {
  std::optional<call_message> early;
  shared_call left;
  {
    const std::lock_guard guard(noting_);
    const auto found = calls_.find(key_of(*call));
    const bool is_known = found != calls_.end();
    if (std::exchange(call->is_early, false) && is_known) {
      early = std::exchange(call->early, std::nullopt);
      call->is_deferred = false;
      left = call;
    } else {
      call->at = step::answering;
      if (!is_closed_) {
        --running_;
        return;
      }
      if (is_known) {
        left = std::move(found->second);
        calls_.erase(found);
      }
    }
  }
  // It runs on where the function has answered before it returned.
  if (call->at == step::running) {
    send_late(call, std::move(early));
    return end_running(call);
  }
  if (left) give_back(left);
  worker_core& worker = call->over->worker();
  const std::lock_guard guard(worker.lock());
  {
    const std::lock_guard noting(noting_);
    --running_;
  }
  worker.wake_waiters();
}

bool call_server_core::is_running() const noexcept {
  const std::lock_guard guard(noting_);
  return running_ > 0;
}

void call_server_core::forget(const key& which) noexcept {
  shared_call gone;  // goes behind the lock
  const std::lock_guard guard(noting_);
  const auto found = calls_.find(which);
  if (found == calls_.end()) return;
  gone = std::move(found->second);
  calls_.erase(found);
}

/// Receives a call that was announced, or that has memory beside it.
void call_server_core::receive(const shared_call& call, const call_parts& told,
                               const call_memory& where) {
  const room made = note(call, options_.max_calls);
  if (made == room::memory_full) return refuse(call, too_much_memory());
  if (made != room::noted) return refuse(call, too_many());
  call->here.make_room(call->came.length(), told, where);
  call->wire = call->here.body;
  call->pending =
      call->came.start_receive(call->here.runs(), {.timeout = time_left_of(call->came.header())});
  // The handler keeps the call, whose memory is written, until the receive has ended.
  call->pending.then([kept = weak_from_this(), call](std::error_code outcome) {
    if (const auto self = kept.lock()) self->received(key_of(*call), outcome);
  });
}

void call_server_core::received(const key& which, std::error_code outcome) noexcept {
  const shared_call call = start_running(which);
  if (!call) return;
  try {
    if (outcome == errc::canceled) {  // its caller has given up
      forget(which);
    } else if (outcome) {
      refuse(call, failure_of_receive(outcome));
    } else {
      run(call);
    }
  } catch (...) {  // as in `arrived`
    give_back(call);
  }
  end_running(call);
}

call_context call_server_core::context_of(const served_call& call) const {
  call_context made;
  if (const auto who = call.over->ucx().identity()) made.identity = *who;
  made.program = options_.program;
  made.peer = &call.peer;
  made.number = call.number;
  made.clock = call.moment;
  if (call.deadline != clock::time_point::max()) made.deadline = call.deadline;
  return made;
}

void call_server_core::run(const shared_call& call) {
  auto asked = decode_request({call->came.header(), call->wire});
  if (!asked) return refuse(call, failure_of_request(asked.why()));
  asked->memory = call->here.parts;
  if (options_.clock) {
    call->moment = peer_clocks::came(*options_.clock, call->came.header(), *call->over);
  }
  call_context context = context_of(*call);
  if (auto made = answer_of(call, *asked, context)) {
    if (call->at == step::running) undo_deferral(*call);
    return answer(call, *std::move(made));
  }
  call->came = message();  // the function has taken its arguments
  call->wire = {};
  call->here = {};
  give_memory_back(*call);
}

/// The memory beside it is the function's, or was freed.
void call_server_core::give_memory_back(served_call& call) noexcept {
  const std::lock_guard guard(noting_);
  call.memory = 0;
}

/// There was no memory to defer it.
void call_server_core::undo_deferral(served_call& call) noexcept {
  const std::lock_guard guard(noting_);
  call.is_deferred = call.is_early = false;
  call.early.reset();
}

/// Runs the function, unless its caller has given up.
std::optional<call_message> call_server_core::answer_of(const shared_call& call,
                                                        const asked_call& asked,
                                                        call_context& context) {
  const bool is_late = call->deadline <= call->over->worker().api().now();
  call->has_run = !is_late;
  if (!is_late) return run_function(call, asked, context);
  if (is_of_server_) peer_gate(call->peer).tell(asked, call_outcome::given_up);
  return functions_->refuse(call->number,
                            {.outcome = call_outcome::given_up, .text = "the caller has given up"},
                            context, asked.name);
}

/// Its arguments do not come any more, or its answer goes nowhere.
void call_server_core::cancel(std::uint64_t connection, std::uint64_t number) noexcept {
  shared_call call;
  bool is_waiting = false;
  {
    const std::lock_guard guard(noting_);
    for (auto at = calls_.lower_bound({connection, 0});
         at != calls_.end() && at->first.first == connection; ++at) {
      if (at->second->number != number || at->second->is_one_way) continue;
      if (at->second->at == step::running) return;  // its answer begins to go
      call = at->second;
      is_waiting = call->is_deferred;
      if (is_waiting) calls_.erase(at);
      break;
    }
  }
  if (!call) return;
  if (is_waiting) return drop(*call);
  call->pending.cancel();
}

/// An answer has a stamp where its call has one.
void call_server_core::stamp(const served_call& call, call_message& answer) const noexcept {
  if (call.is_stamped) add_clock(answer, options_.clock->now());
}

void call_server_core::refuse(const shared_call& call, const call_failure& why) {
  answer(call, functions_->refuse(call->number, why, context_of(*call)));
}

/// Ends a call that can go no further: there is no memory, or the server ends. An answer that goes
/// already goes on.
void call_server_core::give_back(const shared_call& call) noexcept {
  forget(key_of(*call));
  if (call->is_answered) {
    if (!call->pending.done()) call_exchange::leave(std::move(call->pending));
    return;
  }
  call->is_answered = true;
  tell_late(*call, call_outcome::handler_failed);
  if (!call->is_one_way) try {
      const errc why_not = call->is_deferred ? errc::canceled : errc::no_memory;
      const call_failure why{
          .outcome = call->has_run ? call_outcome::handler_failed : call_outcome::busy,
          .text = "the peer could not go on with this call",
          .code = call->has_run ? make_error_code(why_not) : std::error_code()};
      call_message made = encode_failure(call->number, why);
      stamp(*call, made);
      call_exchange::post(call->over, answer_messages, std::move(made));
    } catch (const std::bad_alloc&) {  // the caller learns it from its deadline
    }
  call->pending.cancel();
  call->stop.request_stop();
}

/// Returns 0 where it has no deadline, and more than 0 else.
std::chrono::nanoseconds call_server_core::time_left(const served_call& call) const noexcept {
  if (call.deadline == clock::time_point::max()) return {};
  const std::chrono::nanoseconds left = call.deadline - call.over->worker().api().now();
  return std::max(left, std::chrono::nanoseconds(1));
}

/// An answer that does not go at once makes its call one under way, until it has gone. The refusals
/// of calls that are too many get as many places again. Of a caller that takes no answers, further
/// ones are dropped: what it costs here is bounded.
void call_server_core::answer(const shared_call& call, call_message made) {
  if (call->is_one_way) return forget(key_of(*call));
  stamp(*call, made);
  request sending =
      call_exchange::send(call->over, answer_messages, std::move(made), time_left(*call));
  call->is_answered = true;
  call->came = message();
  call->wire = {};
  call->here = {};
  give_memory_back(*call);
  if (sending.done()) return forget(key_of(*call));
  call->pending = std::move(sending);
  switch (note(call, twice(options_.max_calls))) {
    case room::noted:
      break;
    case room::full:
    case room::memory_full:
      call->pending = request();
      return;
    case room::closed:
      forget(key_of(*call));
      return call_exchange::leave(std::move(call->pending));
  }
  call->pending.then([kept = weak_from_this(), which = key_of(*call)](std::error_code) {
    if (const auto self = kept.lock()) self->forget(which);
  });
}

}  // namespace ucx::detail
