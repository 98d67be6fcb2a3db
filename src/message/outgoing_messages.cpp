#include "message/outgoing_messages.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "cuda/device_pointer.hpp"
#include "message/message_link.hpp"
#include "message/message_refusals.hpp"
#include "wire/brief_parcel.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// No sender needs more room at a peer, and no peer is believed to grant more: four gibibytes.
constexpr std::size_t most_room = std::size_t{1} << 24U;

/// Returns the least size of messages that need an operation. Longer messages are not worth a copy.
/// All need one where the debug log tells of them, or where their context has no feature::am.
std::size_t least_long(const worker_core& worker) noexcept {
  const context_core& context = worker.context();
  const std::size_t most = frame_sender::short_header + frame_sender::short_message;
  const bool possible = context.has(feature::am) && context.write_piece() >= most &&
                        !context.log().writes(log_level::debug);
  return possible ? frame_sender::short_message + 1 : 0;
}

}  // namespace

outgoing_messages::outgoing_messages(endpoint_core& endpoint, message_link& link) noexcept
    : endpoint_(endpoint), link_(link), short_below_(least_long(endpoint.worker())) {}

void outgoing_messages::open(std::uint64_t room) noexcept {
  room_granted_ = room_ = static_cast<std::size_t>(std::min<std::uint64_t>(room, most_room));
}

bool outgoing_messages::send_short(message_kind kind, std::uint64_t tag,
                                   std::span<const std::byte> header,
                                   std::span<const std::byte> bytes) {
  if (bytes.size() >= short_below_ || header.size() > frame_sender::short_header) return false;
  if (!is_on_host(bytes) || !is_on_host(header)) return false;
  const std::size_t units = units_of(header.size() + bytes.size());
  const bool empty_stream = kind == message_kind::stream && bytes.empty();
  if (!endpoint_.is_ready() || units > room_ || units > room_granted_ / 2 || !queued_.empty() ||
      empty_stream) {
    return false;
  }
  brief_parcel said;
  said.kind = kind;
  said.session = endpoint_.session().number();
  said.number = static_cast<std::uint32_t>(next_number_);
  said.credit = static_cast<std::uint8_t>(link_.incoming().take_credit(brief_parcel::most_credit));
  said.tag = tag;
  std::array<std::byte, brief_parcel::longest + frame_sender::short_header> head;
  const std::size_t ours = said.encode(std::span(head).first<brief_parcel::longest>());
  if (!header.empty()) std::memcpy(head.data() + ours, header.data(), header.size());
  try {
    endpoint_.worker().sender().send_short(endpoint_, std::span(head).first(ours + header.size()),
                                           bytes);
  } catch (...) {  // nothing was sent
    link_.incoming().return_credit(said.credit);
    throw;
  }
  room_ -= units;
  ++next_number_;
  return true;
}

void outgoing_messages::start(send_operation& send) {
  if (const std::error_code unusable = endpoint_.status()) return send.connection_failed(unusable);
  send.retain();
  const bool gone = queued_.empty() && go(send);
  if (!gone && !send.done()) {
    if (send.may_wait()) {
      send.place = send_operation::where::queued;
      queued_.push_back(send);
    } else {
      room_news_ = news::wanted;
      send.give_up(errc::would_block);
    }
  }
  send.release();
}

bool outgoing_messages::go(send_operation& send) noexcept {
  try {
    return send.go();
  } catch (const std::bad_alloc&) {
    link_.blame_memory();
    return false;
  }
}

void outgoing_messages::leave(send_operation& send) noexcept {
  const auto place = std::exchange(send.place, send_operation::where::nowhere);
  if (place == send_operation::where::queued) queued_.remove(send);
  if (place == send_operation::where::unanswered) unanswered_.remove(send);
  if (place != send_operation::where::nowhere && !are_pending()) endpoint_.closing().look();
}

void outgoing_messages::await_answer(send_operation& send) noexcept {
  leave(send);
  send.place = send_operation::where::unanswered;
  unanswered_.push_back(send);
}

void outgoing_messages::all_said(send_operation& send) noexcept {
  if (send.place != send_operation::where::queued) return;
  leave(send);
  if (sending_queued_ || (queued_.empty() && room_news_ == news::nothing)) return;
  endpoint_.owe(endpoint_core::to_send);
}

void outgoing_messages::send_queued() noexcept {
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
  if (!room || std::exchange(room_news_, news::nothing) == news::nothing) return;
  if (const auto handlers = link_.handlers(); handlers && handlers->on_writable) {
    try {
      endpoint_.worker().queue_handler([handlers] { handlers->on_writable(); });
    } catch (const std::bad_alloc&) {  // the clock tries again: rounds would find work without end
      room_news_ = news::untold;
      endpoint_.worker().tick_soon();
    }
  }
}

bool outgoing_messages::retell_room() noexcept {
  if (room_news_ != news::untold) return true;
  room_news_ = news::wanted;
  send_queued();
  return room_news_ != news::untold;
}

bool outgoing_messages::has_room(std::size_t units) noexcept {
  if (endpoint_.state() != endpoint_state::ready) return false;
  if (units <= room_) return true;
  want_more();
  return false;
}

/// Once for each loan: a peer that has nothing to lend remembers it.
void outgoing_messages::want_more() noexcept {
  if (wants_more_ || !link_.is_flexible()) return;
  wants_more_ = true;
  link_.say(loan_change::want, 0);
}

bool outgoing_messages::take_room(std::size_t units) noexcept {
  if (!has_room(units)) return false;
  room_ -= units;
  return true;
}

bool outgoing_messages::goes_whole(std::size_t size) const noexcept {
  if (size > std::min(longest_whole, endpoint_.pieces().write)) return false;
  if (size <= always_whole) return units_of(size) <= room_granted_ / 2;
  return endpoint_.detects_failure() && units_of(size) + room_granted_ / 2 <= room_;
}

bool outgoing_messages::is_full(std::size_t header, std::size_t payload) noexcept {
  const std::size_t units = units_of(goes_whole(header + payload) ? header + payload : header);
  const bool has_room =
      endpoint_.state() == endpoint_state::ready && queued_.empty() && units <= room_;
  // A connection that is lost has a better answer.
  if (has_room || endpoint_.status()) return false;
  room_news_ = news::wanted;
  want_more();
  return true;
}

bool outgoing_messages::add_room(std::size_t units) {
  room_ += units;
  if (room_ > room_granted_) {
    room_ = room_granted_;
    link_.blame("the peer gives back more room than it was left");
    return false;
  }
  if (!queued_.empty() || room_news_ != news::nothing) send_queued();
  return true;
}

void outgoing_messages::lent_more(std::uint64_t units) {
  if (units > most_room - std::min(room_granted_, most_room)) {
    return link_.blame("the peer lends more room than there can be");
  }
  room_ += static_cast<std::size_t>(units);
  room_granted_ += static_cast<std::size_t>(units);
  wants_more_ = false;
  send_queued();
}

void outgoing_messages::lent_less(std::uint64_t units) {
  if (units > room_granted_ - room_) {
    return link_.blame("the peer keeps more room than was used");
  }
  room_granted_ -= static_cast<std::size_t>(units);
  wants_more_ = false;
  send_queued();  // what was to go whole may be announced now
}

void outgoing_messages::recalled(std::uint64_t loan) {
  const std::size_t kept = static_cast<std::size_t>(std::min<std::uint64_t>(loan, room_granted_));
  const std::size_t given = std::min(room_, room_granted_ - kept);
  room_ -= given;
  room_granted_ -= given;
  wants_more_ = false;
  link_.say(loan_change::back, given);
  send_queued();
}

void outgoing_messages::withdraw(const send_operation& send, std::error_code why) noexcept {
  parcel said;
  said.code = parcel_code::withdrawal;
  said.kind = send.kind();
  said.number = send.number();
  said.status = static_cast<std::uint16_t>(error_status(why));
  link_.send(said);
}

send_operation* outgoing_messages::find_unanswered(std::uint64_t number) const noexcept {
  for (send_operation* each = unanswered_.front(); each != nullptr;
       each = unanswered_.next(*each)) {
    if (each->number() == number) return each;
  }
  return nullptr;
}

void outgoing_messages::answered(const parcel& said) {
  send_operation* const asked = find_unanswered(said.number);
  if (asked == nullptr) {
    // The send was given up, or was a whole message whose sender did not wait for an answer.
    const bool unknown = said.code == parcel_code::refusal && said.kind == message_kind::active &&
                         said.number < next_number_ &&
                         status_error(said.status) == errc::no_such_handler;
    if (unknown) tell_unknown(said);
    return;
  }
  if (said.code == parcel_code::refusal) return asked->refused(status_error(said.status));
  if (said.tag == 0) return asked->acknowledged();
  if (!asked->granted(said.tag, said.length))
    link_.blame("the peer wants another message than it was told of");
}

void outgoing_messages::tell_unknown(const parcel& said) {
  const auto& listened = endpoint_.worker().part<refused_messages>();
  if (listened.told != nullptr && listened.number == said.tag) {
    return listened.told->refused(endpoint_, said.number);
  }
  if (const auto handlers = link_.handlers(); handlers && handlers->on_refused) {
    const message_info info{said.tag, said.length};
    return endpoint_.worker().queue_handler([handlers, info] { handlers->on_refused(info); });
  }
  if (!unknown_.add(said.tag)) return;
  endpoint_.log(log_level::warning, "the peer has no handler for messages of number ",
                std::to_string(said.tag));
}

}  // namespace ucx::detail
