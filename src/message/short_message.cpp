// How short messages go: without an operation, and where UCX takes them at once without a copy. And
// how they come.
#include <algorithm>
#include <array>
#include <cstring>

#include "connection/endpoint_core.hpp"
#include "connection/message_sender.hpp"
#include "cuda/device_pointer.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool message_link::send_short(message_kind kind, std::uint64_t tag,
                              std::span<const std::byte> header, std::span<const std::byte> bytes) {
  if (bytes.size() >= short_below_ || header.size() > message_sender::short_header) return false;
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
  said.credit = static_cast<std::uint8_t>(take_credit(brief_parcel::most_credit));
  said.tag = tag;
  std::array<std::byte, brief_parcel::longest + message_sender::short_header> head;
  const std::size_t ours = said.encode(std::span(head).first<brief_parcel::longest>());
  if (!header.empty()) std::memcpy(head.data() + ours, header.data(), header.size());
  try {
    endpoint_.worker().sender().send_short(endpoint_, std::span(head).first(ours + header.size()),
                                           bytes);
  } catch (...) {  // nothing was sent
    to_give_back_ += said.credit;
    used_ += said.credit;
    throw;
  }
  room_ -= units;
  ++next_number_;
  return true;
}

void message_sender::send_short(endpoint_core& to, std::span<const std::byte> header,
                                std::span<const std::byte> bytes) {
  // Where UCX has room for it, it is gone when the call returns, and needs no copy to last.
  static constexpr ucp_request_param_t params = [] {
    ucp_request_param_t made = {};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    made.flags = UCP_AM_SEND_FLAG_EAGER;
    return made;
  }();
  ucs_status_ptr_t const sent = worker_.api().am_send_nbx(
      to.handle(), parcel_id, header.data(), header.size(), bytes.data(), bytes.size(), &params);
  if (sent == nullptr) return;
  if (UCS_PTR_RAW_STATUS(sent) != UCS_ERR_NO_RESOURCE) return to.lost(UCS_PTR_RAW_STATUS(sent));
  outgoing& copied = take(to, kind::plain, bytes);
  std::copy(header.begin(), header.end(), copied.header.begin());
  post(copied, parcel_id, header.size());
}

bool message_link::received(const read_brief_parcel& read, std::span<const std::byte> payload,
                            void* lasting) {
  if (given_up_) return false;
  if (read.said.credit > 0) add_room(read.said.credit);
  const bool in_turn =
      read.said.number == static_cast<std::uint32_t>(expected_) && held_back_.empty();
  if (in_turn && deliver_at_once(read, payload)) return false;
  read_parcel same;
  same.said = read.said.whole(expected_, read.header.size(), payload.size());
  same.header = read.header;
  return arrived(same, payload, lasting);
}

/// The shortest way, of what somebody waits for in whose turn it comes; returns whether it was
/// that.
bool message_link::deliver_at_once(const read_brief_parcel& heard,
                                   std::span<const std::byte> payload) {
  const brief_parcel& said = heard.said;
  const std::size_t units = units_of(heard.header.size() + payload.size());
  if (units > granted_ - used_) return false;
  if (said.kind == message_kind::active) {
    if (!exchange().has_handler(said.tag)) return false;
    read_parcel same;
    same.said = said.whole(expected_, heard.header.size(), payload.size());
    same.header = heard.header;
    arrived_message* const kept = exchange().keep(endpoint_, same, payload, nullptr, units);
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
    receive_operation* const first = stream_.empty() ? stream_receives_.front() : nullptr;
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

}  // namespace ucx::detail
