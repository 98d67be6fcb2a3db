// How short messages go: without an operation, and where UCX takes them at once without a copy.
#include <algorithm>
#include <array>

#include "detail/endpoint_core.hpp"
#include "detail/message_link.hpp"
#include "detail/message_router.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

bool message_link::send_short(message_kind kind, std::uint64_t tag,
                              std::span<const std::byte> header, std::span<const std::byte> bytes) {
  if (header.size() > message_router::short_header || bytes.size() > message_router::short_message)
    return false;
  const bool empty_stream = kind == message_kind::stream && bytes.empty();
  const std::size_t units = units_of(header.size() + bytes.size());
  if (empty_stream || !queued_.empty() || !goes_whole(header.size() + bytes.size()) ||
      !has_room(units)) {
    return false;
  }
  parcel said;
  said.code = parcel_code::message;
  said.kind = kind;
  said.session = endpoint_.session();
  said.number = next_number_;
  said.credit = take_credit(parcel::most_brief_credit);
  said.tag = tag;
  std::array<std::byte, parcel::longest_brief + message_router::short_header> head;
  const std::size_t ours = said.encode_brief(std::span(head).first<parcel::longest_brief>());
  std::copy(header.begin(), header.end(), head.begin() + static_cast<std::ptrdiff_t>(ours));
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
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  ucs_status_ptr_t const sent = worker_.api().am_send_nbx(
      to.handle(), parcel_id, header.data(), header.size(), bytes.data(), bytes.size(), &params);
  if (sent == nullptr) return;
  if (UCS_PTR_RAW_STATUS(sent) != UCS_ERR_NO_RESOURCE) return to.lost(UCS_PTR_RAW_STATUS(sent));
  outgoing& copied = take(to, kind::plain, bytes);
  std::copy(header.begin(), header.end(), copied.header.begin());
  post(copied, parcel_id, header.size());
}

}  // namespace ucx::detail
