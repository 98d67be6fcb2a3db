#include "message/message_exchange.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/matches.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

message_exchange::message_exchange(worker_core& worker) noexcept
    : worker_(worker),
      loans_(worker),
      handlers_(worker),
      arrived_(worker),
      budget_(worker.options().untaken_messages / window_unit) {}

message_exchange::~message_exchange() {
  while (send_operation* forgotten = lent_.front()) {
    lent_.remove(*forgotten);
    delete forgotten;
  }
}

void message_exchange::close() noexcept {
  arrived_.close();
  handlers_.clear();
}

void message_exchange::post(receive_operation& receive) {
  arrived_message* const here = arrived_.find(receive.wanted_from(), receive.wanted());
  if (here != nullptr && (here->failure || has_place(receive, here->said.length))) {
    take_by_hand(*here);
    receive.take(*here);
    return arrived_.discard(*here, errc::message_refused);
  }
  if (here == nullptr && receive.endpoint() != nullptr) {
    const endpoint_core& from = *receive.endpoint();
    if (!from.is_ready() && from.status()) return receive.connection_failed(from.status());
  }
  if (!receive.lacks_buffer()) receive.wait_for_message();
  posted_.push_back(receive);
}

receive_operation* message_exchange::match(const endpoint_core& from, std::uint64_t tag,
                                           std::uint64_t length) {
  for (receive_operation* each = posted_.front(); each != nullptr; each = posted_.next(*each)) {
    if (each->wanted_from() != nullptr && each->wanted_from() != &from) continue;
    // One that waits for a buffer does so because of an earlier message, which comes first.
    if (!matches(each->wanted(), tag) || each->lacks_buffer()) continue;
    if (!has_place(*each, length)) continue;
    posted_.remove(*each);
    each->matched();
    if (!lacking_.empty()) leave_lines();
    return each;
  }
  return nullptr;
}

void message_exchange::leave_lines() noexcept {
  for (receive_operation* each = lacking_.front(); each != nullptr;) {
    receive_operation* const next = lacking_.next(*each);  // which a failure leaves where it is
    if (each->held() == nullptr) {
      const arrived_message* const here = arrived_.find(each->wanted_from(), each->wanted());
      if (here == nullptr || here->failure) try_again(*each);
    }
    each = next;
  }
}

bool message_exchange::has_place(receive_operation& posted, std::uint64_t length) {
  if (posted.find_place(length)) return true;
  posted.wait_for_buffer(nullptr);
  lacking_.push_back(posted);
  return false;
}

void message_exchange::receive(receive_operation& receive, arrived_message& held) {
  if (held.failure || receive.find_place(held.said.length)) return receive.take(held);
  receive.wait_for_buffer(&held);
  lacking_.push_back(receive);
}

void message_exchange::buffers_came() {
  for (receive_operation* each = lacking_.front(); each != nullptr;) {
    receive_operation* const next = lacking_.next(*each);
    try_again(*each);  // which takes no other out of the list
    each = next;
  }
  leave_lines();
}

void message_exchange::try_again(receive_operation& lacking) {
  arrived_message* const held = lacking.held();
  arrived_message* const here =
      held != nullptr ? held : arrived_.find(lacking.wanted_from(), lacking.wanted());
  if (here == nullptr) {  // somebody else has it
    needs_no_buffer(lacking);
    const endpoint_core* const from = lacking.endpoint();
    if (from != nullptr && from->status()) lacking.connection_failed(from->status());
    return;
  }
  if (!here->failure && !lacking.find_place(here->said.length)) return;
  if (held == nullptr) arrived_.take_out(*here);
  const bool ours = held == nullptr || held->owner == arrived_message::whose::left;
  if (ours) here->owner = arrived_message::whose::matched;
  needs_no_buffer(lacking);
  if (held == nullptr) {
    posted_.remove(lacking);
    lacking.matched();
  }
  lacking.take(*here);
  if (ours) arrived_.discard(*here, errc::message_refused);
}

void message_exchange::needs_no_buffer(receive_operation& lacking) noexcept {
  arrived_message* const held = lacking.held();
  lacking_.remove(lacking);
  lacking.needs_no_buffer();
  const bool is_left = held != nullptr && held->owner == arrived_message::whose::left;
  if (is_left) arrived_.discard(*held, errc::message_refused);
}

bool message_exchange::is_here(const receive_operation& lacking) const noexcept {
  const arrived_message* const held = lacking.held() != nullptr
                                          ? lacking.held()
                                          : arrived_.find(lacking.wanted_from(), lacking.wanted());
  return held != nullptr && held->here();
}

void message_exchange::let_go(arrived_message& held) noexcept {
  if (held.receive == nullptr) return arrived_.discard(held, errc::message_refused);
  held.owner = arrived_message::whose::left;
}

void message_exchange::take_by_hand(arrived_message& waiting) noexcept {
  arrived_.take_out(waiting);
  leave_lines();
}

void message_exchange::withdrawn(arrived_message& announced, std::error_code why) noexcept {
  announced.failure = why;
  if (receive_operation* const told = announced.receive) return told->withdrawn(why);
  // Its holder is told when it wants the payload; one that is held back goes when it is its turn.
  if (!arrived_messages::waits(announced)) return;
  arrived_.remove(announced);
  leave_lines();
  arrived_.discard(announced, errc::message_refused);
}

void message_exchange::lost(arrived_message& announced, std::error_code why) noexcept {
  announced.failure = why;
  if (receive_operation* const told = announced.receive) told->withdrawn(why);
}

void message_exchange::call_handler(arrived_message& active) {
  // A message whose call never runs is freed with the exchange.
  worker_.queue_handler(active);
  arrived_.matched(active);
}

}  // namespace ucx::detail
