#include "connection/piece_sender.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/piece_shelf.hpp"
#include "wire/digest.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

piece_sender::~piece_sender() = default;

void piece_sender::prepare_pieces(endpoint_core& endpoint, const frame& first,
                                  std::span<const std::byte> bytes, const frame& asked) noexcept {
  prepare_pieces(endpoint, bytes.size());
  first_ = first;
  asked_ = asked;
  bytes_ = bytes;
}

void piece_sender::prepare_pieces(endpoint_core& endpoint, std::size_t size) noexcept {
  endpoint_ = &endpoint;
  size_ = size;
  posted_ = 0;
  stopped_ = false;
  small_ = false;
  first_ = {};
}

bool piece_sender::stop_pieces() noexcept {
  stopped_ = true;
  bool all_go = true;
  for (sent_piece* piece = in_flight_.front(); piece != nullptr;) {
    sent_piece* next = in_flight_.next(*piece);
    const withdrawn_send end = withdraw(*piece);
    if (end != withdrawn_send::kept) {
      in_flight_.remove(*piece);
      piece->owner = nullptr;
      piece->is_left_copy = end == withdrawn_send::copied;
      if (piece->is_left_copy) piece->endpoint->quota().copy_left();
    }
    all_go = all_go && end != withdrawn_send::dropped;
    piece = next;
  }
  return all_go;
}

/// Of a connection, one piece has begun at most: where the others are dropped, copies are few.
withdrawn_send piece_sender::withdraw(const sent_piece& piece) const noexcept {
  if (!piece.endpoint->detects_failure()) return withdrawn_send::copied;  // when it was made
  const bool may_drop = may_drop_pieces();
  const bool may_copy = may_drop || piece.endpoint->quota().may_leave_copy();
  if (piece.request == nullptr || !may_copy) return withdrawn_send::kept;
  return piece.endpoint->worker().api().withdraw_send(piece.request, may_drop);
}

void piece_sender::send_pieces() {
  if (posting_) return;  // an inline completion came back here
  posting_ = true;
  // A piece may end well after its connection did not.
  if (endpoint_->handle() == nullptr) stop_pieces();
  try {
    while (posted_ < size_ && !stopped_ && in_flight_.size() < most_in_flight && may_post()) post();
  } catch (
      const std::bad_alloc&) {  // maybe inside UCX's callbacks, through which nothing may leave
    stop_pieces();
    endpoint_->blame(errc::no_memory, "no memory for a piece of what is sent");
  }
  posting_ = false;
  pieces_moved();
}

piece_sender::wrapped_piece piece_sender::wrap(sent_piece& piece, bool copies) {
  const piece_sizes& sizes = endpoint_->pieces();
  std::size_t largest = first_.code == opcode::write ? sizes.write : sizes.answer;
  if (copies) largest = std::min(largest, largest_copy);
  std::span<const std::byte> bytes = bytes_.subspan(posted_);
  bytes = bytes.first(std::min(shrunk(largest), bytes.size()));
  frame said = first_;
  said.offset += posted_;
  said.length = bytes.size();
  if (copies) {
    piece.copy.assign(bytes.begin(), bytes.end());
    bytes = piece.copy;
  }
  if (wants_digests(asked_)) seal(said, asked_, bytes);
  said.encode(piece.header);
  return {frame_sender::message_id, frame::size, bytes};
}

void piece_sender::post() {
  worker_core& worker = endpoint_->worker();
  sent_piece& piece = worker.part<piece_shelf>().take();
  wrapped_piece wrapped;
  try {
    wrapped = wrap(piece, !endpoint_->detects_failure());
  } catch (const std::bad_alloc&) {
    worker.part<piece_shelf>().give_back(piece);
    throw;
  }
  piece.owner = this;
  piece.endpoint = endpoint_;
  piece.request = nullptr;
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &piece_sender::on_sent;
  params.user_data = &piece;
  posted_ += wrapped.bytes.size();
  in_flight_.push_back(piece);
  endpoint_->transfer_started();
  ucs_status_ptr_t sent = worker.api().am_send_nbx(
      endpoint_->handle(), wrapped.id, piece.header.data(), wrapped.header_size,
      wrapped.bytes.data(), wrapped.bytes.size(), &params);
  if (UCS_PTR_IS_PTR(sent)) {
    piece.request = sent;
    return;
  }
  const ucs_status_t status = UCS_PTR_RAW_STATUS(sent);
  if (can_wrap_again() && may_shrink(wrapped.bytes.size(), status)) {
    take_back(piece, wrapped.bytes.size());
    return shrink(status);
  }
  ended(piece, status);
}

/// UCX registers what RDMA hardware sends. That fails for pages that the process may not lock, or
/// not write. Nothing was sent then, and the connection is as good as before.
bool piece_sender::is_unregistered(const endpoint_core& to, std::size_t size,
                                   ucs_status_t status) noexcept {
  const bool registering = status == UCS_ERR_IO_ERROR || status == UCS_ERR_NO_MEMORY;
  return registering && size > small_piece && to.ucx().sends_by_rdma();
}

bool piece_sender::may_shrink(std::size_t size, ucs_status_t status) const noexcept {
  return !small_ && is_unregistered(*endpoint_, size, status);
}

void piece_sender::shrink(ucs_status_t why) {
  small_ = true;
  endpoint_->tell_of_copies(why);
}

void piece_sender::take_back(sent_piece& piece, std::size_t size) noexcept {
  posted_ -= size;
  in_flight_.remove(piece);
  endpoint_->worker().part<piece_shelf>().give_back(piece);
  endpoint_->transfer_ended();
  taken_back(size);
}

void piece_sender::ended(sent_piece& sent, ucs_status_t status) {
  in_flight_.remove(sent);
  endpoint_->worker().part<piece_shelf>().give_back(sent);
  endpoint_->transfer_ended();
  if (status == UCS_OK) return;
  stop_pieces();
  endpoint_->lost(status);
}

void piece_sender::on_sent(void* request, ucs_status_t status, void* argument) {
  sent_piece& sent = *static_cast<sent_piece*>(argument);
  endpoint_core& endpoint = *sent.endpoint;
  const ucx_callback scope(endpoint.worker(), request);
  if (piece_sender* const owner = sent.owner) {
    owner->ended(sent, status);
    owner->send_pieces();
    return;
  }
  if (std::exchange(sent.is_left_copy, false)) endpoint.quota().copy_taken();
  endpoint.worker().part<piece_shelf>().give_back(sent);
  endpoint.transfer_ended();
  if (status != UCS_OK && status != UCS_ERR_CANCELED) endpoint.lost(status);
}

}  // namespace ucx::detail
