#include "detail/piece_sender.hpp"

#include <algorithm>

#include "detail/endpoint_core.hpp"
#include "detail/message_router.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

piece_sender::~piece_sender() = default;

void piece_sender::prepare_pieces(endpoint_core& endpoint, const frame& first,
                                  std::span<const std::byte> bytes) noexcept {
  endpoint_ = &endpoint;
  first_ = first;
  bytes_ = bytes;
  posted_ = 0;
  stopped_ = false;
}

void piece_sender::send_pieces() {
  if (posting_) return;  // an inline completion came back here
  posting_ = true;
  // A piece may end well after its connection did not.
  if (endpoint_->handle() == nullptr) stopped_ = true;
  while (posted_ < bytes_.size() && !stopped_) {
    const auto free =
        std::find_if(pieces_.begin(), pieces_.end(), [](const piece& p) { return !p.busy; });
    if (free == pieces_.end()) break;
    post(*free);
  }
  posting_ = false;
  pieces_moved();
}

void piece_sender::post(piece& free) {
  worker_core& worker = endpoint_->worker();
  const std::size_t piece_size = first_.code == opcode::write ? worker.context().write_piece()
                                                              : worker.context().answer_piece();
  const std::uint64_t size = std::min<std::uint64_t>(piece_size, bytes_.size() - posted_);
  frame said = first_;
  said.offset += posted_;
  said.length = size;
  said.encode(free.header);
  free.owner = this;
  free.busy = true;
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &piece_sender::on_sent;
  params.user_data = &free;
  const std::byte* source = bytes_.data() + posted_;
  posted_ += size;
  ++in_flight_;
  endpoint_->transfer_started();
  ucs_status_ptr_t sent =
      worker.api().am_send_nbx(endpoint_->handle(), message_router::message_id, free.header.data(),
                               free.header.size(), source, size, &params);
  if (!UCS_PTR_IS_PTR(sent)) ended(free, UCS_PTR_RAW_STATUS(sent));
}

void piece_sender::ended(piece& sent, ucs_status_t status) {
  sent.busy = false;
  --in_flight_;
  endpoint_->transfer_ended();
  if (status == UCS_OK) return;
  stopped_ = true;
  endpoint_->lost(status);
}

void piece_sender::on_sent(void* request, ucs_status_t status, void* argument) {
  piece& sent = *static_cast<piece*>(argument);
  piece_sender& sender = *sent.owner;
  sender.endpoint_->worker().api().request_free(request);
  sender.ended(sent, status);
  sender.send_pieces();
}

}  // namespace ucx::detail
