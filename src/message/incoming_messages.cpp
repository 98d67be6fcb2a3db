#include "message/incoming_messages.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "connection/endpoint_core.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// No peer needs to leave more here: four gibibytes.
constexpr std::size_t most_granted = std::size_t{1} << 24U;

}  // namespace

incoming_messages::incoming_messages(endpoint_core& endpoint, message_link& link,
                                     std::size_t window) noexcept
    : endpoint_(endpoint),
      link_(link),
      most_(std::clamp(window / window_unit, untaken_budget::stiff_floor, most_granted)) {}

message_exchange& incoming_messages::exchange() const noexcept {
  return endpoint_.worker().messages();
}

untaken_budget& incoming_messages::budget() const noexcept { return exchange().budget(); }

std::uint64_t incoming_messages::first_loan(bool borrows) noexcept {
  if (!is_open()) {
    budget().open(*this, borrows, most_);
    note_loan();
  }
  return lent();
}

void incoming_messages::open(bool same_host) noexcept {
  if (link_.is_flexible()) budget().loosen(*this);
  const bool readable = same_host && endpoint_.worker().context().reads_processes();
  if (readable) loans_ = loans::untried;
  consumed(0);  // what was taken before the welcome
}

void incoming_messages::connection_failed() noexcept {
  for (const auto& [number, held] : held_back_) {
    exchange().arrived().discard(*held, errc::connection_reset);
  }
  held_back_.clear();
  // If this side closed the connection, later receives fail with closed, not with canceled.
  const std::error_code why =
      endpoint_.failure() == errc::canceled ? make_error_code(errc::closed) : endpoint_.failure();
  for (arrived_message* each = arrived_.front(); each != nullptr;) {
    arrived_message* const next = arrived_.next(*each);
    if (each->is_awaited() && !each->failure) exchange().lost(*each, why);
    each = next;
  }
  exchange().leave_lines();
  gone_ = true;
  note_loan();
  settle();
}

void incoming_messages::end() noexcept {
  while (arrived_message* left = stream_.front()) {
    stream_.remove(*left);
    exchange().arrived().discard(*left, errc::message_refused);
  }
  std::size_t dropped = 0;
  for (arrived_message* each = arrived_.front(); each != nullptr;) {
    arrived_message* const next = arrived_.next(*each);
    arrived_.remove(*each);
    // Messages behind one that had no room go, too, so that the rest has no gap.
    if (!exchange().arrived().orphan(*each, dropped == 0)) ++dropped;
    each = next;
  }
  budget().close(*this);
  exchange().leave_lines();
  if (dropped > 0) log_dropped(dropped);
}

void incoming_messages::log_dropped(std::size_t count) const noexcept {
  try {
    endpoint_.worker().context().log().write(
        log_level::warning,
        endpoint_.peer_name() + ": its last " + std::to_string(count) +
            " messages go untaken: what connections that are gone have left "
            "is more than 16 times the message_window, or than untaken_messages");
  } catch (const std::bad_alloc&) {  // no memory to report it
  }
}

bool incoming_messages::arrived(const read_brief_parcel& read, std::span<const std::byte> payload,
                                void* lasting) {
  const bool in_turn =
      read.said.number == static_cast<std::uint32_t>(expected_) && held_back_.empty();
  if (in_turn && deliver_at_once(read, payload)) return false;
  read_parcel same;
  same.said = read.said.whole(expected_, read.header.size(), payload.size());
  same.header = read.header;
  return arrived(same, payload, lasting);
}

/// The peer may not have heard that others have its room.
void incoming_messages::blame_for_room() noexcept {
  if (used_ - lent() > written_off()) {
    return link_.blame("the peer sends more than there is room for");
  }
  link_.blame_memory("the peer gave back no room in time, and others use it");
}

bool incoming_messages::arrived(const read_parcel& read, std::span<const std::byte> payload,
                                void* lasting) {
  const parcel& said = read.said;
  const std::size_t units = units_of(read.header.size() + payload.size());
  used_ += units;
  if (used_ > lent() && !budget().regain(*this, used_ - lent())) {
    blame_for_room();
    return false;
  }
  if (said.kind == message_kind::stream && (said.code != parcel_code::message || payload.empty())) {
    link_.blame("the byte stream came as something else than bytes");
    return false;
  }
  if (said.number == expected_) {
    ++expected_;
    const bool kept = deliver(read, payload, lasting, units);
    if (!held_back_.empty()) deliver_held_back();
    return kept;
  }
  // Every message takes a unit, so that none can be further ahead than there are.
  if (said.number < expected_ || said.number - expected_ > lent() + written_off() ||
      held_back_.contains(said.number)) {
    link_.blame("the peer sends messages in no order");
    return false;
  }
  const auto place = held_back_.emplace(said.number, nullptr).first;
  place->second = exchange().arrived().keep(endpoint_, read, payload, lasting, units);
  if (place->second != nullptr) return place->second->lasting != nullptr;
  held_back_.erase(place);
  link_.blame_memory();
  return false;
}

/// The shortest way, of what somebody waits for in whose turn it comes; returns whether it was
/// that.
bool incoming_messages::deliver_at_once(const read_brief_parcel& heard,
                                        std::span<const std::byte> payload) {
  const brief_parcel& said = heard.said;
  const std::size_t units = units_of(heard.header.size() + payload.size());
  if (units > lent() - used_) return false;
  if (said.kind == message_kind::active) {
    if (!exchange().handlers().has(said.tag)) return false;
    read_parcel same;
    same.said = said.whole(expected_, heard.header.size(), payload.size());
    same.header = heard.header;
    arrived_message* const kept =
        exchange().arrived().keep(endpoint_, same, payload, nullptr, units);
    if (kept == nullptr) return false;  // and there will be no memory on the long way either
    take_turn(units);
    deliver(*kept);
    return true;
  }
  if (said.kind == message_kind::tagged) {
    receive_operation* const waits = exchange().match(endpoint_, said.tag, payload.size());
    if (waits == nullptr) return false;
    take_turn(units);
    waits->take(said.tag, payload);
  } else {
    // To one that takes all of it: what is left over is kept.
    stream_receive* const first = stream_.empty() ? stream_receives_.front() : nullptr;
    if (first == nullptr || payload.empty() || payload.size() > first->wants() ||
        first->into_device()) {  // which may fail, and leave the bytes to the next one
      return false;
    }
    take_turn(units);
    first->feed(payload);
  }
  consumed(units);
  return true;
}

void incoming_messages::deliver_held_back() {
  while (!link_.has_given_up() && !held_back_.empty() && held_back_.begin()->first == expected_) {
    arrived_message* const next = held_back_.begin()->second;
    held_back_.erase(held_back_.begin());
    ++expected_;
    arrived_.remove(*next);  // it stood in the order of arrival
    arrived_.push_back(*next);
    deliver(*next);
  }
}

/// The short way, of what somebody waits for already; all else is kept first.
bool incoming_messages::deliver(const read_parcel& heard, std::span<const std::byte> payload,
                                void* lasting, std::size_t units) {
  const parcel& said = heard.said;
  std::size_t read = 0;  // by the stream's readers
  if (said.kind == message_kind::tagged) {
    if (receive_operation* const waits = exchange().match(endpoint_, said.tag, said.length)) {
      waits->take(endpoint_, said, heard.offer.empty() ? payload : heard.offer);
      consumed(units);
      return false;
    }
  } else if (said.kind == message_kind::active && !exchange().handlers().has(said.tag)) {
    refuse(said, make_error_code(errc::no_such_handler));
    consumed(units);
    return false;
  } else if (said.kind == message_kind::stream) {
    read = feed_stream(payload);
    if (read == payload.size()) {
      consumed(units);
      return false;
    }
  }
  arrived_message* const kept =
      exchange().arrived().keep(endpoint_, heard, payload, lasting, units);
  if (kept == nullptr) {
    link_.blame_memory();
    return false;
  }
  kept->read = read;
  const bool lasts = kept->lasting != nullptr;
  try {
    give(*kept);
  } catch (const std::bad_alloc&) {
    kept->lasting = nullptr;  // UCX takes it back, for what is returned here
    link_.blame_memory();
    exchange().arrived().discard(*kept, errc::no_memory);
    return false;
  }
  return lasts;
}

/// Nothing of UCX's that is kept gets lost where memory is short: who waits is told by the end of
/// the connection.
void incoming_messages::deliver(arrived_message& kept) noexcept {
  try {
    give(kept);
  } catch (const std::bad_alloc&) {
    link_.blame_memory();
    exchange().arrived().discard(kept, errc::no_memory);
  }
}

/// Gives it to the receive or handler that waits for it; else keeps it for later. Leaves it alone
/// if it throws.
void incoming_messages::give(arrived_message& kept) {
  if (kept.failure) return exchange().arrived().discard(kept, errc::message_refused);
  switch (kept.said.kind) {
    case message_kind::tagged:
      if (receive_operation* const waits =
              exchange().match(endpoint_, kept.said.tag, kept.said.length)) {
        exchange().arrived().matched(kept);
        waits->take(kept);
        exchange().arrived().discard(kept, errc::message_refused);
      } else {
        exchange().arrived().add(kept);
      }
      break;
    case message_kind::active:
      if (exchange().handlers().has(kept.said.tag)) {
        exchange().call_handler(kept);
      } else {
        refuse(kept.said, make_error_code(errc::no_such_handler));
        kept.owner = arrived_message::whose::taken;
        exchange().arrived().discard(kept, errc::no_such_handler);
      }
      break;
    case message_kind::stream:
      stream_.push_back(kept);
      read_stream();
      break;
  }
}

/// The first call finds what the system allows, without touching the receive's memory.
bool incoming_messages::borrow(const cma_read& loan) noexcept {
  if (loans_ == loans::fail) return false;
  if (loans_ == loans::work) return true;
  const cma_read::sender found = loan.look_for_sender(endpoint_.worker().api());
  if (found == cma_read::sender::found) loans_ = loans::work;
  if (found == cma_read::sender::unreadable) loans_ = loans::fail;
  return found == cma_read::sender::found;
}

void incoming_messages::piece(const parcel& said, std::span<const std::byte> payload) {
  receive_operation* const asked = exchange().receiving().find(said.number);
  // One that gave up has told the peer so.
  if (asked != nullptr && asked->endpoint() == &endpoint_) asked->piece(said.length, payload);
}

void incoming_messages::withdrawn(const parcel& said) {
  const std::error_code why = errc::message_withdrawn;
  for (receive_operation* each = receiving_.front(); each != nullptr;
       each = receiving_.next(*each)) {
    if (each->message_number() == said.number) return each->withdrawn(why);
  }
  for (arrived_message* each = arrived_.front(); each != nullptr; each = arrived_.next(*each)) {
    if (each->said.number != said.number || !each->is_awaited()) continue;
    // The sender keeps its bytes until it knows that they are not read.
    if (each->said.keyed && !each->failure) refuse(each->said, why);
    return exchange().withdrawn(*each, why);
  }
}

void incoming_messages::grant(const parcel& announced, std::uint64_t receive) noexcept {
  parcel said;
  said.code = parcel_code::grant;
  said.kind = announced.kind;
  said.number = announced.number;
  said.tag = receive;
  said.length = announced.length;
  link_.send(said);
}

void incoming_messages::refuse(const parcel& announced, std::error_code why) noexcept {
  parcel said;
  said.code = parcel_code::refusal;
  said.kind = announced.kind;
  said.number = announced.number;
  said.tag = announced.tag;
  said.length = announced.length;
  said.status = static_cast<std::uint16_t>(error_status(why));
  link_.send(said);
}

void incoming_messages::wanted() noexcept {
  wants_ = true;  // if this has overtaken the welcome, it is looked at then
  endpoint_.state() == endpoint_state::ready ? ask(false) : note_loan();
}

void incoming_messages::ask(bool taken) noexcept {
  budget().ask(*this, taken);
  wants_ = wants_ && may_grow();
  note_loan();
}

void incoming_messages::given_back(std::uint64_t units) noexcept {
  if (!is_flexible()) return;
  if (units > unused() + written_off()) {
    return link_.blame("the peer gives back more room than it was lent");
  }
  if (!untaken_budget::may_give_back(*this, units)) {
    return link_.blame("the peer keeps room that it was to give back");
  }
  budget().given_back(*this, static_cast<std::size_t>(units));
  note_loan();
  settle();
}

void incoming_messages::more_lent(std::size_t units) noexcept {
  wants_ = false;
  note_loan();
  link_.say(loan_change::more, units);
}

void incoming_messages::recalled(std::size_t loan) noexcept {
  const worker_core& worker = endpoint_.worker();
  answers_until_ = after(worker.api().now(), worker.options().heartbeat_timeout);
  link_.say(loan_change::recall, loan);
}

bool incoming_messages::is_overdue() const noexcept {
  return endpoint_.worker().api().now() >= answers_until_;
}

/// Room came back: it is the peer's again, or that of others.
void incoming_messages::settle() noexcept {
  if (gone_) {
    used_ -= std::exchange(to_give_back_, 0);
    if (is_open()) budget().shrink(*this, used_);
    return;
  }
  if (!is_open() || endpoint_.state() != endpoint_state::ready) return;  // a plain peer has no loan
  if (wants_) ask(true);
  if (budget().is_short()) {
    const std::size_t kept = budget().withhold(*this, to_give_back_);
    to_give_back_ -= kept;
    used_ -= kept;
    note_loan();
    if (kept > 0) link_.say(loan_change::less, kept);
    budget().serve();
  }
  while (to_give_back_ >= lent() / 4 && endpoint_.state() == endpoint_state::ready) {
    parcel said;
    said.code = parcel_code::credit;
    link_.send(said);
  }
}

std::uint16_t incoming_messages::take_credit(std::uint16_t most) noexcept {
  const std::size_t credit = std::min<std::size_t>(to_give_back_, most);
  to_give_back_ -= credit;
  used_ -= credit;
  return static_cast<std::uint16_t>(credit);
}

// The byte stream.

void incoming_messages::start_stream(stream_receive& receive) {
  if (receive.wants_nothing()) {
    receive.feed({});
  } else if (stream_.empty() && endpoint_.status()) {
    receive.connection_failed(endpoint_.status());
  } else {
    stream_receives_.push_back(receive);
    read_stream();
    // The messages that were left did not end it, and no more will come.
    if (!receive.done() && endpoint_.status()) receive.connection_failed(endpoint_.status());
  }
}

std::size_t incoming_messages::feed_stream(std::span<const std::byte> bytes) {
  std::size_t read = 0;
  if (!stream_.empty()) return read;
  while (read < bytes.size() && !stream_receives_.empty()) {
    read += stream_receives_.front()->feed(bytes.subspan(read));
  }
  return read;
}

void incoming_messages::read_stream() {
  while (!stream_.empty() && !stream_receives_.empty()) {
    arrived_message& first = *stream_.front();
    first.read += stream_receives_.front()->feed(first.bytes.subspan(first.read));
    if (first.read < first.bytes.size()) continue;
    stream_.remove(first);
    exchange().arrived().discard(first, errc::message_refused);
  }
}

}  // namespace ucx::detail
