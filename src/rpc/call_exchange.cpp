#include "rpc/call_exchange.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "message/send_operation.hpp"
#include "message/send_source.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/message.hpp"
#include "ucx/payload.hpp"
#include "wire/message_number.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Takes over bytes that a send gives back by destroying them.
buffer buffer_of(std::vector<std::byte> bytes) {
  auto kept = std::make_unique<std::vector<std::byte>>(std::move(bytes));
  const std::span<std::byte> all(*kept);
  return buffer(all, [kept = std::move(kept)](std::span<std::byte>) {});
}

/// Returns what is sent, one behind the other. The body is last: what stands behind a short run is
/// copied with it.
std::vector<std::span<const std::byte>> runs_of(const call_message& what) {
  std::vector<std::span<const std::byte>> made;
  made.reserve(1 + what.parts.size());
  for (const sent_part& each : what.parts) made.push_back(each.bytes);
  made.emplace_back(what.body);
  return made;
}

/// Sends what has parts. All of it lives until UCX lets go.
request send_owned(const std::shared_ptr<endpoint_core>& to, std::uint64_t number,
                   call_message what, const send_options& options) {
  auto kept = std::make_unique<call_message>(std::move(what));
  const std::vector<std::span<const std::byte>> runs = runs_of(*kept);
  const std::vector<std::byte> head = kept->long_head;
  const std::span<std::byte> all(kept->body);
  buffer owner(all, [kept = std::move(kept)](std::span<std::byte>) {});  // goes behind the lock
  const std::lock_guard guard(to->worker().lock());
  if (const std::error_code unusable = to->status()) {
    return failed_request(unusable, "answering a call of " + to->peer_name());
  }
  const active_message address{number, head};
  auto& idle = to->worker().pool_of<send_operation>();
  send_operation* const send = idle.take();
  try {
    const payload sent(runs);
    send->begin(to, send_source(address, sent, owner), options);
  } catch (...) {
    idle.give_back(send);
    throw;
  }
  return core_access::make_request(send);
}

/// Bodies up to this size are copied by their sends, and need no buffer.
constexpr std::size_t short_call = 1024;

}  // namespace

call_exchange::call_exchange(worker_core& worker) : worker_(worker) {}

void call_exchange::listen() {
  if (listens_) return;
  const std::uint64_t number = message_number(call_owner, answer_messages);
  active_handlers& handlers = worker_.messages().handlers();
  handlers.claim(number, call_owner);
  auto function = std::make_shared<active_handlers::handler>(
      [this](message came) { answered(std::move(came)); });
  handlers.exchange(number, function);
  worker_.part<refused_messages>() = {message_number(call_owner, call_messages), this};
  listens_ = true;
}

std::uint64_t call_exchange::add(call_operation& begun) {
  const std::uint64_t number = calls_.add(begun);
  all_.push_back(begun);
  return number;
}

void call_exchange::remove(call_operation& ended) noexcept {
  calls_.remove(ended.number());
  all_.remove(ended);
}

void call_exchange::sent(std::uint64_t number, std::error_code outcome) noexcept {
  call_operation* const call = calls_.find(number);
  if (call != nullptr && outcome) call->send_failed(outcome);
}

void call_exchange::refused(endpoint_core& by, std::uint64_t message) noexcept {
  for (call_operation* each = all_.front(); each != nullptr; each = all_.next(*each)) {
    if (each->endpoint() != &by || !each->was_refused(message)) continue;
    return each->send_failed(make_error_code(errc::no_such_handler));
  }
}

request call_exchange::send(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                            call_message what, std::chrono::nanoseconds timeout) {
  const send_options options{.timeout = timeout, .memory = send_memory::copied};
  if (!what.parts.empty()) {
    tell_parts(what);
    return send_owned(to, message_number(call_owner, number), std::move(what), options);
  }
  endpoint peer = core_access::make_endpoint(to);
  const active_message address{message_number(call_owner, number), what.head()};
  if (what.body.size() <= short_call) return peer.start_send(address, what.body, options);
  return peer.start_send(address, buffer_of(std::move(what.body)), options);
}

request call_exchange::lend(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                            const call_message& what, std::chrono::nanoseconds timeout) {
  endpoint peer = core_access::make_endpoint(to);
  const active_message address{message_number(call_owner, number), what.head()};
  return peer.start_send(address, runs_of(what), {.timeout = timeout});
}

request call_exchange::copy(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                            call_message what) {
  tell_parts(what);
  endpoint peer = core_access::make_endpoint(to);
  const active_message address{message_number(call_owner, number), what.head()};
  return peer.start_send(address, runs_of(what), {.memory = send_memory::copied});
}

void call_exchange::tell_parts(call_message& what) {
  std::array<memory_kind, call_writer::max_parts> kinds{};
  for (std::size_t i = 0; i < what.parts.size(); ++i) {
    kinds[i] = place_of(what.parts[i].bytes.data()).kind;
  }
  add_parts(what, kinds);
}

void call_exchange::leave(request send) noexcept {
  operation* const left = core_access::take(std::move(send));
  if (left == nullptr) return;
  worker_core& worker = left->worker();
  const std::shared_ptr<worker_core> kept = worker.weak_from_this().lock();
  operation::kept_alive held;  // goes behind the lock
  const std::lock_guard guard(worker.lock());
  held = left->let_go();
  left->release();
}

void call_exchange::post(const std::shared_ptr<endpoint_core>& to, std::uint32_t number,
                         call_message what) noexcept try {
  request sending = send(to, number, std::move(what));
  if (!sending.done()) leave(std::move(sending));
} catch (const std::bad_alloc&) {  // the peer learns it from its deadline, or not at all
}

/// Returns the call that this peer may answer.
call_operation* call_exchange::find(std::uint64_t number, const endpoint& from) noexcept {
  call_operation* const call = calls_.find(number);
  const endpoint_core* const sender = core_access::core(from).get();
  return call != nullptr && call->endpoint() == sender ? call : nullptr;
}

/// A handler of the worker.
void call_exchange::answered(message&& came) {
  const auto begun = decode_beginning(came.header());
  if (!begun) return;
  const auto told = decode_parts(came.header());
  if (told && told->count > 0) return answered_beside(std::move(came), begun->number, *told);
  const endpoint from = came.peer();
  const std::lock_guard guard(worker_.lock());
  call_operation* const call = find(begun->number, from);
  if (call != nullptr) take(std::move(came), *call);  // else it was given up
}

/// A call has one answer: further ones that are announced are refused.
void call_exchange::take(message&& came, call_operation& call) try {
  if (came.has_payload()) {
    const std::span<const std::byte> body = came.data();
    return call.answered(came.header(), {body.begin(), body.end()});
  }
  if (call.is_receiving()) return;
  if (came.length() > call_writer::max_size) {
    return call.answer_lost(make_error_code(errc::protocol_error));
  }
  const auto into = std::make_shared<landed_message>();
  into->make_room(came.length(), {}, {});
  receive(std::make_shared<message>(std::move(came)), into, call);
} catch (const std::bad_alloc&) {
  call.answer_lost(make_error_code(errc::no_memory));
}

/// An answer with memory beside it, whose place is made without the lock.
void call_exchange::answered_beside(message&& came, std::uint64_t number, const call_parts& told) {
  const endpoint from = came.peer();
  const std::uint64_t length = came.length();
  call_memory where;
  std::shared_ptr<landed_message> into;  // goes behind the lock, as the next one
  std::shared_ptr<message> kept;
  {
    const std::lock_guard guard(worker_.lock());
    call_operation* const call = find(number, from);
    if (call == nullptr || call->is_receiving()) return;
    if (length < told.total || length - told.total > call_writer::max_size) {
      return call->answer_lost(make_error_code(errc::protocol_error));
    }
    if (told.total > call->landing().most) return call->memory_refused();
    where = call->landing().where;
  }
  bool is_there = false;
  try {
    into = std::make_shared<landed_message>();
    into->make_room(length, told, where);
    kept = std::make_shared<message>(std::move(came));
    is_there = true;
  } catch (...) {  // what a resource throws
  }
  const std::lock_guard guard(worker_.lock());
  call_operation* const call = find(number, from);
  if (call == nullptr || call->is_receiving()) return;
  if (!is_there) return call->answer_lost(make_error_code(errc::no_memory));
  try {
    receive(kept, into, *call);
  } catch (const std::bad_alloc&) {
    call->answer_lost(make_error_code(errc::no_memory));
  }
}

/// Receives an answer that was announced, or that has memory beside it.
void call_exchange::receive(const std::shared_ptr<message>& came,
                            const std::shared_ptr<landed_message>& into, call_operation& call) {
  const auto receiving =
      std::make_shared<request>(came->start_receive(into->runs(), {.timeout = call.time_left()}));
  call.receives(receiving);
  const auto end = [this, came, into, number = call.number()](std::error_code outcome) {
    const std::lock_guard guard(worker_.lock());
    call_operation* const waiting = calls_.find(number);
    if (waiting == nullptr) return;
    if (outcome) return waiting->answer_lost(outcome);
    try {
      waiting->answered(came->header(), std::move(into->body), std::move(into->parts));
    } catch (const std::bad_alloc&) {
      waiting->answer_lost(make_error_code(errc::no_memory));
    }
  };
  // The handler keeps the request until it has run.
  receiving->then([end, receiving](std::error_code outcome) { end(outcome); });
}

}  // namespace ucx::detail
