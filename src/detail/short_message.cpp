// How short messages go: without an operation, and where UCX takes them at once without a copy.
#include <algorithm>
#include <array>
#include <cstring>

#include "detail/endpoint_core.hpp"
#include "detail/message_link.hpp"
#include "detail/message_router.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

bool message_link::send_short(message_kind kind, std::uint64_t tag,
                              std::span<const std::byte> header, std::span<const std::byte> bytes) {
  if (bytes.size() >= short_below_ || header.size() > message_router::short_header) return false;
  const std::size_t units = units_of(header.size() + bytes.size());
  const bool empty_stream = kind == message_kind::stream && bytes.empty();
  if (!endpoint_.is_ready() || units > room_ || units > room_granted_ / 2 || !queued_.empty() ||
      empty_stream) {
    return false;
  }
  brief_parcel said;
  said.kind = kind;
  said.session = endpoint_.session();
  said.number = static_cast<std::uint32_t>(next_number_);
  said.credit = static_cast<std::uint8_t>(take_credit(brief_parcel::most_credit));
  said.tag = tag;
  std::array<std::byte, brief_parcel::longest + message_router::short_header> head;
  const std::size_t ours = said.encode(std::span(head).first<brief_parcel::longest>());
  if (!header.empty()) std::memcpy(head.data() + ours, header.data(), header.size());
  try {
    endpoint_.worker().router().send_short(endpoint_, std::span(head).first(ours + header.size()),
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

void message_router::send_short(endpoint_core& to, std::span<const std::byte> header,
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

}  // namespace ucx::detail
