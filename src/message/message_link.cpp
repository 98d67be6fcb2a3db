#include "message/message_link.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/message_sender.hpp"
#include "message/message_exchange.hpp"
#include "wire/frame.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// A window below this could not take a longest header.
constexpr std::size_t least_window = 16 << 10;
/// Nobody needs more of a peer's, or is believed to grant it: four gibibytes.
constexpr std::size_t most_room = std::size_t{1} << 24U;

/// Returns the least size of messages that need an operation: to be longer than worth a copy, to be
/// told of in the log, or because their context has none.
std::size_t least_long(const worker_core& worker) noexcept {
  const context_core& context = worker.context();
  const std::size_t most = message_sender::short_header + message_sender::short_message;
  const bool possible = context.has(feature::am) && context.write_piece() >= most &&
                        !context.log().writes(log_level::debug);
  return possible ? message_sender::short_message + 1 : 0;
}

}  // namespace

message_link::message_link(endpoint_core& endpoint, std::size_t window)
    : endpoint_(endpoint),
      short_below_(least_long(endpoint.worker())),
      granted_(std::clamp(window / window_unit, least_window / window_unit, most_room)) {}

message_link::~message_link() = default;

void message_link::end() noexcept {
  while (arrived_message* left = stream_.front()) {
    stream_.remove(*left);
    exchange().discard(*left, errc::message_refused);
  }
  std::size_t dropped = 0;
  for (arrived_message* each = arrived_.front(); each != nullptr;) {
    arrived_message* const next = arrived_.next(*each);
    arrived_.remove(*each);
    // What is behind one that had no room goes, too: whoever takes the rest sees no gap.
    if (!exchange().orphan(*each, dropped == 0)) ++dropped;
    each = next;
  }
  exchange().leave_lines();
  if (dropped > 0) log_dropped(dropped);
}

void message_link::log_dropped(std::size_t count) const noexcept {
  try {
    endpoint_.worker().context().log().write(
        log_level::warning, endpoint_.peer_name() + ": its last " + std::to_string(count) +
                                " messages go untaken: what connections that are gone have left "
                                "is more than 16 times the message_window");
  } catch (const std::bad_alloc&) {  // nobody can be told
  }
}

message_exchange& message_link::exchange() const noexcept { return endpoint_.worker().messages(); }

void message_link::blame(const char* words) noexcept {
  given_up_ = true;
  endpoint_.blame(errc::protocol_error, words);
}

void message_link::blame_memory() noexcept {
  given_up_ = true;
  endpoint_.blame(errc::no_memory, "no memory for a message");
}

void message_link::open(std::uint64_t room, bool same_host) noexcept {
  room_granted_ = room_ = static_cast<std::size_t>(std::min<std::uint64_t>(room, most_room));
  same_host_ = same_host;
  if (!endpoint_.worker().context().reads_processes()) loans_ = loans::fail;
  // The last look may have been at a deadline of connecting: from here on the heart is watched.
  if (awaits_peer()) endpoint_.worker().tick_soon();
  consumed(0);  // what was taken before the welcome
  send_queued();
}

void message_link::connection_failed() noexcept {
  for (const auto& [number, held] : held_back_) {
    exchange().discard(*held, errc::connection_reset);
  }
  held_back_.clear();
  // What this side closed was not given up by who receives it later.
  const std::error_code why =
      endpoint_.failure() == errc::canceled ? make_error_code(errc::closed) : endpoint_.failure();
  for (arrived_message* each = arrived_.front(); each != nullptr;) {
    arrived_message* const next = arrived_.next(*each);
    if (!each->here() && !each->taken && !each->failure) exchange().lost(*each, why);
    each = next;
  }
  exchange().leave_lines();
}

// Sending.

void message_link::start(send_operation& send) {
  if (const std::error_code unusable = endpoint_.status()) return send.connection_failed(unusable);
  send.retain();
  const bool gone = queued_.empty() && go(send);
  if (!gone && !send.done()) {
    if (send.may_wait()) {
      send.place = send_operation::where::queued;
      queued_.push_back(send);
    } else {
      room_wanted_ = true;
      send.give_up(errc::would_block);
    }
  }
  send.release();
}

bool message_link::go(send_operation& send) noexcept {
  try {
    return send.go();
  } catch (const std::bad_alloc&) {
    blame_memory();
    return false;
  }
}

void message_link::leave(send_operation& send) noexcept {
  const auto place = std::exchange(send.place, send_operation::where::nowhere);
  if (place == send_operation::where::queued) queued_.remove(send);
  if (place == send_operation::where::unanswered) unanswered_.remove(send);
  if (place != send_operation::where::nowhere && !sends_pending()) endpoint_.look_at_closing();
}

void message_link::await_answer(send_operation& send) noexcept {
  leave(send);
  send.place = send_operation::where::unanswered;
  unanswered_.push_back(send);
}

void message_link::all_said(send_operation& send) noexcept {
  if (send.place != send_operation::where::queued) return;
  leave(send);
  if (sending_queued_ || (queued_.empty() && !room_wanted_)) return;
  endpoint_.owe(endpoint_core::to_send);
}

void message_link::send_queued() noexcept {
  if (endpoint_.state() != endpoint_state::ready || sending_queued_) return;
  sending_queued_ = true;
  while (send_operation* next = queued_.front()) {
    next->retain();
    const bool gone = go(*next);
    if (gone) all_said(*next);
    next->release();
    if (!gone) break;
  }
  sending_queued_ = false;
  const bool room = queued_.empty() && room_granted_ > 0 && room_ >= room_granted_ / 4;
  if (room && std::exchange(room_wanted_, room_wanted_ && !room) && handlers_ &&
      handlers_->on_room) {
    try {
      endpoint_.worker().queue_handler([told = handlers_] { told->on_room(); });
    } catch (const std::bad_alloc&) {  // it is told a round later
      room_wanted_ = true;
      endpoint_.owe(endpoint_core::to_send);
    }
  }
}

bool message_link::has_room(std::size_t units) const noexcept {
  return endpoint_.state() == endpoint_state::ready && units <= room_;
}

bool message_link::take_room(std::size_t units) noexcept {
  if (!has_room(units)) return false;
  room_ -= units;
  return true;
}

bool message_link::goes_whole(std::size_t size) const noexcept {
  if (size > std::min(longest_whole, endpoint_.pieces().write)) return false;
  if (size <= always_whole) return units_of(size) <= room_granted_ / 2;
  return endpoint_.detects_failure() && units_of(size) + room_granted_ / 2 <= room_;
}

bool message_link::is_full(std::size_t header, std::size_t payload) noexcept {
  const std::size_t units = units_of(goes_whole(header + payload) ? header + payload : header);
  const bool has_room =
      endpoint_.state() == endpoint_state::ready && queued_.empty() && units <= room_;
  // A connection that is lost has a better answer.
  if (has_room || endpoint_.status()) return false;
  return room_wanted_ = true;
}

void message_link::add_room(std::size_t units) {
  room_ += units;
  if (room_ > room_granted_) return blame("the peer gives back more room than it was left");
  if (!queued_.empty() || room_wanted_) send_queued();
}

std::uint16_t message_link::take_credit(std::uint16_t most) noexcept {
  const std::size_t credit = std::min<std::size_t>(to_give_back_, most);
  to_give_back_ -= credit;
  used_ -= credit;
  return static_cast<std::uint16_t>(credit);
}

void message_link::withdraw(const send_operation& send, std::error_code why) noexcept {
  parcel said;
  said.code = parcel_code::withdrawal;
  said.kind = send.kind();
  said.number = send.number();
  said.status = static_cast<std::uint16_t>(error_status(why));
  this->send(said);
}

/// Its memory is shown to nobody but a process that the system lets share memory with this one.
bool message_link::lends() const noexcept {
  return same_host_ && endpoint_.session().theirs().borrows;
}

send_operation* message_link::find_unanswered(std::uint64_t number) const noexcept {
  for (send_operation* each = unanswered_.front(); each != nullptr;
       each = unanswered_.next(*each)) {
    if (each->number() == number) return each;
  }
  return nullptr;
}

void message_link::answered(const parcel& said) {
  send_operation* const asked = find_unanswered(said.number);
  if (asked == nullptr) {
    // Given up meanwhile; or a whole message of which nobody waited for an answer.
    const bool unknown = said.code == parcel_code::refusal && said.kind == message_kind::active &&
                         said.number < next_number_ &&
                         status_error(said.status) == errc::no_such_handler;
    if (unknown) tell_unknown(said);
    return;
  }
  if (said.code == parcel_code::refusal) return asked->refused(status_error(said.status));
  if (said.tag == 0) return asked->acknowledged();
  if (!asked->granted(said.tag, said.length))
    blame("the peer wants another message than it was told of");
}

void message_link::tell_unknown(const parcel& said) {
  if (handlers_ && handlers_->on_refused) {
    const message_info info{said.tag, said.length};
    return endpoint_.worker().queue_handler([told = handlers_, info] { told->on_refused(info); });
  }
  if (!unknown_.add(said.tag)) return;
  endpoint_.log(log_level::warning, "the peer has no handler for messages of number ",
                std::to_string(said.tag));
}

// Receiving.

bool message_link::received(const read_parcel& read, std::span<const std::byte> payload,
                            void* lasting) {
  const parcel& said = read.said;
  if (given_up_) return false;
  if (said.credit > 0) add_room(said.credit);
  switch (said.code) {
    case parcel_code::message:
    case parcel_code::announce:
      return arrived(read, payload, lasting);
    case parcel_code::piece:
      piece(said, payload);
      break;
    case parcel_code::grant:
    case parcel_code::refusal:
      answered(said);
      break;
    case parcel_code::withdrawal:
      withdrawn(said);
      break;
    case parcel_code::credit:
      break;
  }
  return false;
}

bool message_link::arrived(const read_parcel& read, std::span<const std::byte> payload,
                           void* lasting) {
  const parcel& said = read.said;
  const std::size_t units = units_of(read.header.size() + payload.size());
  used_ += units;
  if (used_ > granted_) {
    blame("the peer sends more than there is room for");
    return false;
  }
  if (said.kind == message_kind::stream && (said.code != parcel_code::message || payload.empty())) {
    blame("the byte stream came as something else than bytes");
    return false;
  }
  if (said.number == expected_) {
    ++expected_;
    const bool kept = deliver(read, payload, lasting, units);
    if (!held_back_.empty()) deliver_held_back();
    return kept;
  }
  // Every message takes a unit, so that none can be further ahead than there are.
  if (said.number < expected_ || said.number - expected_ > granted_ ||
      held_back_.contains(said.number)) {
    blame("the peer sends messages in no order");
    return false;
  }
  const auto place = held_back_.emplace(said.number, nullptr).first;
  place->second = exchange().keep(endpoint_, read, payload, lasting, units);
  if (place->second != nullptr) return place->second->lasting != nullptr;
  held_back_.erase(place);
  blame_memory();
  return false;
}

void message_link::deliver_held_back() {
  while (!given_up_ && !held_back_.empty() && held_back_.begin()->first == expected_) {
    arrived_message* const next = held_back_.begin()->second;
    held_back_.erase(held_back_.begin());
    ++expected_;
    arrived_.remove(*next);  // its place was that of its coming
    arrived_.push_back(*next);
    deliver(*next);
  }
}

/// The short way, of what somebody waits for already; all else is kept first.
bool message_link::deliver(const read_parcel& heard, std::span<const std::byte> payload,
                           void* lasting, std::size_t units) {
  const parcel& said = heard.said;
  std::size_t read = 0;  // by the stream's readers
  if (said.kind == message_kind::tagged) {
    if (receive_operation* const waits = exchange().match(endpoint_, said.tag, said.length)) {
      waits->take(endpoint_, said, said.lends ? heard.offer : payload);
      consumed(units);
      return false;
    }
  } else if (said.kind == message_kind::active && !exchange().has_handler(said.tag)) {
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
  arrived_message* const kept = exchange().keep(endpoint_, heard, payload, lasting, units);
  if (kept == nullptr) {
    blame_memory();
    return false;
  }
  kept->read = read;
  const bool lasts = kept->lasting != nullptr;
  try {
    give(*kept);
  } catch (const std::bad_alloc&) {
    kept->lasting = nullptr;  // UCX takes it back, for what is returned here
    blame_memory();
    exchange().discard(*kept, errc::no_memory);
    return false;
  }
  return lasts;
}

/// Nothing of UCX's that is kept gets lost where memory is short: who waits is told by the end of
/// the connection.
void message_link::deliver(arrived_message& kept) noexcept {
  try {
    give(kept);
  } catch (const std::bad_alloc&) {
    blame_memory();
    exchange().discard(kept, errc::no_memory);
  }
}

/// To who waits for it; keeps it for later where nobody does. What throws has left it alone.
void message_link::give(arrived_message& kept) {
  if (kept.failure) return exchange().discard(kept, errc::message_refused);
  switch (kept.said.kind) {
    case message_kind::tagged:
      if (receive_operation* const waits =
              exchange().match(endpoint_, kept.said.tag, kept.said.length)) {
        exchange().matched(kept);
        waits->take(kept);
        exchange().discard(kept, errc::message_refused);
      } else {
        exchange().add(kept);
      }
      break;
    case message_kind::active:
      if (exchange().has_handler(kept.said.tag)) {
        exchange().call_handler(kept);
      } else {
        refuse(kept.said, make_error_code(errc::no_such_handler));
        kept.taken = true;
        exchange().discard(kept, errc::no_such_handler);
      }
      break;
    case message_kind::stream:
      stream_.push_back(kept);
      read_stream();
      break;
  }
}

/// What the system allows shows the first time, without touching the receive's memory.
bool message_link::borrow(const borrowing& loan) noexcept {
  if (!same_host_ || loans_ == loans::fail) return false;
  if (loans_ == loans::work) return true;
  const borrowing::sender found = loan.look_for_sender(endpoint_.worker().api());
  if (found == borrowing::sender::found) loans_ = loans::work;
  if (found == borrowing::sender::unreadable) loans_ = loans::fail;
  return found == borrowing::sender::found;
}

void message_link::piece(const parcel& said, std::span<const std::byte> payload) {
  receive_operation* const asked = exchange().receiving().find(said.number);
  // One that gave up has told the peer so.
  if (asked != nullptr && asked->endpoint() == &endpoint_) asked->piece(said.length, payload);
}

void message_link::withdrawn(const parcel& said) {
  const std::error_code why = errc::message_withdrawn;
  for (receive_operation* each = receiving_.front(); each != nullptr;
       each = receiving_.next(*each)) {
    if (each->message_number() == said.number) return each->withdrawn(why);
  }
  for (arrived_message* each = arrived_.front(); each != nullptr; each = arrived_.next(*each)) {
    if (each->said.number != said.number || each->here() || each->taken) continue;
    return exchange().withdrawn(*each, why);
  }
}

void message_link::send(parcel& said) noexcept {
  // Also while connecting: a peer's message may overtake its welcome.
  const endpoint_state state = endpoint_.state();
  if (state == endpoint_state::failed || state == endpoint_state::closed) return;
  said.session = endpoint_.session().number();
  said.credit = take_credit();
  try {
    endpoint_.worker().sender().send(endpoint_, said);
  } catch (const std::bad_alloc&) {
    blame_memory();
  }
}

void message_link::grant(const parcel& announced, std::uint64_t receive) noexcept {
  parcel said;
  said.code = parcel_code::grant;
  said.kind = announced.kind;
  said.number = announced.number;
  said.tag = receive;
  said.length = announced.length;
  send(said);
}

void message_link::refuse(const parcel& announced, std::error_code why) noexcept {
  parcel said;
  said.code = parcel_code::refusal;
  said.kind = announced.kind;
  said.number = announced.number;
  said.tag = announced.tag;
  said.length = announced.length;
  said.status = static_cast<std::uint16_t>(error_status(why));
  send(said);
}

void message_link::consumed(std::size_t units) noexcept {
  to_give_back_ += units;
  while (to_give_back_ >= granted_ / 4 && endpoint_.state() == endpoint_state::ready) {
    parcel said;
    said.code = parcel_code::credit;
    send(said);
  }
}

// The byte stream.

void message_link::start_stream(receive_operation& receive) {
  if (receive.wants_nothing()) {
    receive.feed({});
  } else if (stream_.empty() && endpoint_.status()) {
    receive.connection_failed(endpoint_.status());
  } else {
    receive.wait_for_message();
    stream_receives_.push_back(receive);
    read_stream();
    // What was left did not do, and nothing more will come.
    if (!receive.done() && endpoint_.status()) receive.connection_failed(endpoint_.status());
  }
}

std::size_t message_link::feed_stream(std::span<const std::byte> bytes) {
  std::size_t read = 0;
  if (!stream_.empty()) return read;
  while (read < bytes.size() && !stream_receives_.empty()) {
    read += stream_receives_.front()->feed(bytes.subspan(read));
  }
  return read;
}

void message_link::read_stream() {
  while (!stream_.empty() && !stream_receives_.empty()) {
    arrived_message& first = *stream_.front();
    first.read += stream_receives_.front()->feed(first.bytes.subspan(first.read));
    if (first.read < first.bytes.size()) continue;
    stream_.remove(first);
    exchange().discard(first, errc::message_refused);
  }
}

}  // namespace ucx::detail
