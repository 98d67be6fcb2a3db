#include "message/message_exchange.hpp"

#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Payloads below are copied also where UCX would leave its buffer: that is as large as a segment,
/// and there are few of them.
constexpr std::size_t least_kept = 2048;

/// What idle messages keep of their memory.
constexpr std::size_t most_bytes_kept = 4096;
constexpr std::size_t most_idle_kept = 4096;

/// What a round reads of messages that are lent: a tenth of a millisecond. A quarter of it would
/// cost a tenth of the rate.
constexpr std::size_t most_borrowed = std::size_t{1} << 20U;

/// How many windows' worth of messages are kept whose connections are gone.
constexpr std::size_t most_orphaned_windows = 16;

}  // namespace

message_exchange::~message_exchange() {
  while (send_operation* forgotten = lent_.front()) {
    lent_.remove(*forgotten);
    delete forgotten;
  }
}

void message_exchange::close() noexcept {
  for (const std::unique_ptr<arrived_message>& each : all_) {
    if (each->lasting != nullptr) {
      worker_.api().am_data_release(worker_.handle(), std::exchange(each->lasting, nullptr));
    }
  }
  handlers_.clear();
}

void message_exchange::post(receive_operation& receive) {
  arrived_message* const here = find(receive.wanted_from(), receive.wanted());
  if (here != nullptr && (here->failure || has_place(receive, here->said.length))) {
    take_by_hand(*here);
    receive.take(*here);
    return discard(*here, errc::message_refused);
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
    if (!each->wanted().accepts(tag) || each->lacks_buffer()) continue;
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
      const arrived_message* const here = find(each->wanted_from(), each->wanted());
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
      held != nullptr ? held : find(lacking.wanted_from(), lacking.wanted());
  if (here == nullptr) {  // somebody else has it
    needs_no_buffer(lacking);
    const endpoint_core* const from = lacking.endpoint();
    if (from != nullptr && from->status()) lacking.connection_failed(from->status());
    return;
  }
  if (!here->failure && !lacking.find_place(here->said.length)) return;
  if (held == nullptr) take_out(*here);
  const bool ours = held == nullptr || std::exchange(held->left_to_it, false);
  needs_no_buffer(lacking);
  if (held == nullptr) {
    posted_.remove(lacking);
    lacking.matched();
  }
  lacking.take(*here);
  if (ours) discard(*here, errc::message_refused);
}

void message_exchange::needs_no_buffer(receive_operation& lacking) noexcept {
  arrived_message* const held = lacking.held();
  lacking_.remove(lacking);
  lacking.needs_no_buffer();
  if (held != nullptr && held->left_to_it) discard(*held, errc::message_refused);
}

bool message_exchange::is_here(const receive_operation& lacking) const noexcept {
  const arrived_message* const held =
      lacking.held() != nullptr ? lacking.held() : find(lacking.wanted_from(), lacking.wanted());
  return held != nullptr && held->here();
}

void message_exchange::let_go(arrived_message& held) noexcept {
  if (held.receive == nullptr) return discard(held, errc::message_refused);
  held.left_to_it = true;
}

void message_exchange::borrow(receive_operation& receive) noexcept {
  borrowing_.push_back(receive);
  worker_.agenda().copies = true;
}

void message_exchange::borrowed(receive_operation& receive) noexcept {
  borrowing_.remove(receive);
  worker_.agenda().copies = !borrowing_.empty();
}

void message_exchange::read_loans() {
  receive_operation& next = *borrowing_.front();
  if (next.read_loan(most_borrowed)) {
    borrowing_.remove(next);
    borrowing_.push_back(next);
  }
}

arrived_message* message_exchange::take_idle() {
  if (idle_.empty()) {
    idle_.reserve(all_.size() + 1);  // so that giving back needs no memory
    return all_.emplace_back(std::make_unique<arrived_message>()).get();
  }
  arrived_message* const taken = idle_.back();
  idle_.pop_back();
  return taken;
}

arrived_message* message_exchange::keep(endpoint_core& from, const read_parcel& read,
                                        std::span<const std::byte> payload, void* lasting,
                                        std::size_t units) {
  arrived_message* made = nullptr;
  try {
    made = take_idle();
    made->header.assign(read.header.begin(), read.header.end());
    made->bytes = {};
    if (read.said.lends) {
      lasting = nullptr;
      made->copy.assign(read.offer.begin(), read.offer.end());
    } else if (lasting != nullptr && payload.size() >= least_kept) {
      made->bytes = payload;
    } else {
      lasting = nullptr;
      made->copy.assign(payload.begin(), payload.end());
      made->bytes = made->copy;
    }
  } catch (const std::bad_alloc&) {
    if (made != nullptr) idle_.push_back(made);
    return nullptr;
  }
  made->from = &from;
  made->said = read.said;
  made->lasting = lasting;
  made->units = units;
  from.messages().incoming().add(*made);
  return made;
}

arrived_message* message_exchange::find(const endpoint_core* from,
                                        const tag_match& wanted) const noexcept {
  for (arrived_message* each = waiting_.front(); each != nullptr; each = waiting_.next(*each)) {
    if (from != nullptr && each->from != from) continue;
    if (wanted.accepts(each->said.tag)) return each;
  }
  return nullptr;
}

void message_exchange::take_out(arrived_message& waiting) noexcept {
  waiting_.remove(waiting);
  matched(waiting);
}

void message_exchange::take_by_hand(arrived_message& waiting) noexcept {
  take_out(waiting);
  leave_lines();
}

void message_exchange::matched(arrived_message& found) noexcept {
  found.matched = true;
  if (!std::exchange(found.said.acknowledge, false) || found.from == nullptr) return;
  found.from->messages().incoming().tell_taken(found.said);
}

void message_exchange::discard(arrived_message& gone, errc why) noexcept {
  if (gone.from != nullptr) {
    incoming_messages& link = gone.from->messages().incoming();
    if (!gone.here() && !gone.taken && !gone.failure) link.refuse(gone.said, make_error_code(why));
    link.remove(gone);
    link.consumed(gone.units);
  } else {
    orphaned_units_ -= gone.units;
  }
  free(gone);
}

void message_exchange::free(arrived_message& gone) noexcept {
  if (gone.lasting != nullptr) {
    worker_.api().am_data_release(worker_.handle(), std::exchange(gone.lasting, nullptr));
  }
  gone.bytes = {};
  gone.failure.clear();
  gone.read = 0;
  gone.units = 0;
  gone.matched = gone.taken = gone.left_to_it = false;
  gone.receive = nullptr;
  const bool keeps = idle_.size() < most_idle_kept;
  if (!keeps || gone.copy.capacity() > most_bytes_kept) gone.copy = std::vector<std::byte>();
  if (!keeps || gone.header.capacity() > most_bytes_kept) gone.header = std::vector<std::byte>();
  idle_.push_back(&gone);
}

void message_exchange::withdrawn(arrived_message& announced, std::error_code why) noexcept {
  announced.failure = why;
  if (receive_operation* const told = announced.receive) return told->withdrawn(why);
  // Its holder is told when it wants the payload; one that is held back goes when it is its turn.
  if (!static_cast<list_hook<arrival_order_tag>&>(announced).linked()) return;
  waiting_.remove(announced);
  leave_lines();
  discard(announced, errc::message_refused);
}

void message_exchange::lost(arrived_message& announced, std::error_code why) noexcept {
  announced.failure = why;
  if (receive_operation* const told = announced.receive) told->withdrawn(why);
}

bool message_exchange::orphan(arrived_message& left, bool room) noexcept {
  left.from = nullptr;
  orphaned_units_ += left.units;
  const std::size_t most = most_orphaned_windows * (worker_.options().message_window / window_unit);
  if (left.matched || (room && orphaned_units_ <= most)) return true;
  waiting_.remove(left);
  discard(left, errc::connection_reset);
  return false;
}

void message_exchange::call_handler(arrived_message& active) {
  // What never runs goes with the exchange.
  worker_.queue_handler(active);
  matched(active);
}

}  // namespace ucx::detail
