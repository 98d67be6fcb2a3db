#include "rpc/call_server_core.hpp"

#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <string>

#include "base/deadline.hpp"
#include "connection/endpoint_core.hpp"
#include "message/message_exchange.hpp"
#include "rpc/call_exchange.hpp"
#include "rpc/call_watch.hpp"
#include "wire/message_number.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bytes behind the head of a call at most.
constexpr std::size_t longest_call_body = call_writer::max_size + call_function::max_name_size;

call_failure too_many() {
  return {.outcome = call_outcome::busy, .text = "this peer has too many calls under way"};
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
  std::map<key, std::shared_ptr<served_call>> left;
  {
    const std::lock_guard guard(noting_);
    is_closed_ = true;
    left.swap(calls_);
  }
  for (const auto& [which, call] : left) call->stop.request_stop();
  if (!replaced || worker->in_handler()) return;
  worker->wait_until(clock::time_point::max(),
                     [&] { return !worker->messages().handlers().is_running(*replaced); });
}

std::size_t call_server_core::under_way() const noexcept {
  const std::lock_guard guard(noting_);
  return calls_.size();
}

call_server_core::key call_server_core::key_of(const served_call& call) {
  return {call.over->number(), call.number};
}

/// A handler of the worker: what comes is a call, or does away with one.
void call_server_core::arrived(message&& came) {
  const auto begun = decode_beginning(came.header());
  if (!begun) return;  // there is nothing by which it could be answered
  auto call = std::make_shared<served_call>(came.peer());
  if (!call->over) return;  // the connection is gone
  call->number = begun->number;
  if (begun->kind == static_cast<std::uint8_t>(call_kind::cancel)) return cancel(key_of(*call));
  call->is_one_way = (begun->flags & call_is_one_way) != 0;
  if (const auto left = time_left_of(came.header()); left.count() > 0) {
    call->deadline = after(call->over->worker().api().now(), left);
  }
  call->came = std::move(came);
  begin(call);
}

void call_server_core::begin(const std::shared_ptr<served_call>& call) {
  if (call->came.length() > longest_call_body) {
    return refuse(*call, {.outcome = call_outcome::bad_call, .text = "it has more than 1 MiB"});
  }
  if (call->came.has_payload()) {
    call->wire = call->came.data();
    return run(call);
  }
  receive(call);
}

/// Returns whether its connection may have one more call under way. Those of one connection stand
/// together.
bool call_server_core::note(const std::shared_ptr<served_call>& call) {
  const std::lock_guard guard(noting_);
  if (is_closed_) return false;
  const auto first = calls_.lower_bound({call->over->number(), 0});
  const auto behind = calls_.lower_bound({call->over->number() + 1, 0});
  const auto count = static_cast<std::size_t>(std::distance(first, behind));
  return count < options_.max_calls && calls_.try_emplace(key_of(*call), call).second;
}

/// Returns whether it was under way.
bool call_server_core::forget(const served_call& call) noexcept {
  const std::lock_guard guard(noting_);
  const auto found = calls_.find(key_of(call));
  if (found == calls_.end() || found->second.get() != &call) return false;
  calls_.erase(found);
  return true;
}

/// Receives a call that was announced.
void call_server_core::receive(const std::shared_ptr<served_call>& call) {
  if (!note(call)) return refuse(*call, too_many());
  call->body.resize(call->came.length());
  call->wire = call->body;
  call->pending = call->came.start_receive(std::span(call->body),
                                           {.timeout = time_left_of(call->came.header())});
  call->pending.then([kept = weak_from_this(), call](std::error_code outcome) {
    const auto self = kept.lock();
    if (!self) return;
    const bool is_served = self->forget(*call);  // no more, if the server has ended
    if (is_served && !outcome) self->run(call);
  });
}

call_context call_server_core::context_of(const served_call& call) const {
  call_context made;
  if (const auto who = call.over->ucx().identity()) made.identity = *who;
  made.program = options_.program;
  made.peer = &call.peer;
  made.number = call.number;
  if (call.deadline != clock::time_point::max()) made.deadline = call.deadline;
  made.stop = call.stop.get_token();
  return made;
}

void call_server_core::run(const std::shared_ptr<served_call>& call) {
  const auto asked = decode_request({call->came.header(), call->wire});
  if (!asked) return refuse(*call, failure_of_request(asked.why()));
  if (options_.executor && asked->kind != call_kind::bind) return run_elsewhere(call, *asked);
  call_context context = context_of(*call);
  answer(*call, answer_of(*call, *asked, context));
}

/// Runs the function, unless its caller has given up.
call_message call_server_core::answer_of(const served_call& call, const asked_call& asked,
                                         call_context& context) {
  const std::shared_ptr<worker_core> worker = worker_.lock();
  const bool is_late = worker && call.deadline <= worker->api().now();
  if (!is_late && !call.stop.stop_requested()) return functions_->answer(asked, context);
  return functions_->refuse(call.number,
                            {.outcome = call_outcome::given_up, .text = "the caller has given up"},
                            context, asked.name);
}

/// The message is kept meanwhile, and with it the caller's credit.
void call_server_core::run_elsewhere(const std::shared_ptr<served_call>& call,
                                     const asked_call& asked) {
  if (!note(call)) return refuse(*call, too_many());
  {
    const std::lock_guard guard(call->over->worker().lock());
    call->pending = call_watch::start(call->over, call->stop);
  }
  auto task = [self = shared_from_this(), call, asked, context = context_of(*call)]() mutable {
    call_message made = self->answer_of(*call, asked, context);
    // The message and the connection go where they came from.
    const std::shared_ptr<worker_core> worker = self->worker_.lock();
    if (!worker) return;
    worker->post([self, call = std::move(call), made = std::move(made)]() mutable {
      self->forget(*call);
      self->answer(*call, std::move(made));
      call->pending = request();
    });
  };
  try {
    options_.executor(std::move(task));
  } catch (const std::exception& thrown) {
    forget(*call);
    refuse(*call, {.outcome = call_outcome::busy,
                   .text = std::string("the executor does not take it: ") + thrown.what()});
  }
}

void call_server_core::cancel(const key& which) noexcept {
  std::shared_ptr<served_call> call;
  {
    const std::lock_guard guard(noting_);
    const auto found = calls_.find(which);
    if (found == calls_.end()) return;  // it is over
    call = found->second;
  }
  call->stop.request_stop();
  call->pending.cancel();  // where its arguments are on their way, they do not come
}

void call_server_core::refuse(const served_call& call, const call_failure& why) {
  answer(call, functions_->refuse(call.number, why, context_of(call)));
}

void call_server_core::answer(const served_call& call, call_message made) const noexcept {
  if (call.is_one_way) return;
  call_exchange::post(call.over, answer_messages, std::move(made));
}

}  // namespace ucx::detail
