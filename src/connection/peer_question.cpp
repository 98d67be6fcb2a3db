#include "connection/peer_question.hpp"

#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void peer_question::enter(endpoint_core& connection, clock::time_point deadline,
                          unsigned further_references) {
  worker_core& worker = connection.worker();
  id_ = worker.sender().questions().add(*this);
  entered_ = true;
  start(worker, connection.shared_from_this(), deadline);
  for (unsigned i = 0; i < further_references; ++i) retain();
  try {
    connection.operations().add(*this);
  } catch (const std::bad_alloc&) {  // it is started, and ends like any other
    give_up_for(make_error_code(errc::no_memory));
  }
}

void peer_question::leave() noexcept {
  if (!std::exchange(entered_, false)) return;
  take_back_place();
  worker().sender().questions().remove(id_);
  endpoint()->operations().remove(*this);
}

std::span<std::byte> peer_question::landing_of(const frame&, std::size_t) noexcept { return {}; }

void peer_question::take_back_place() noexcept {
  if (arrival == nullptr) return;
  worker().api().request_cancel(worker().handle(), std::exchange(arrival, nullptr));
}

void peer_question::blame_peer(const char* what) { endpoint()->blame(errc::protocol_error, what); }

void peer_question::send_question(const frame& asked, std::span<const std::byte> payload) {
  asked.encode(header_);
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &peer_question::on_sent;
  params.user_data = this;
  retain();  // header and payload have to live until UCX has sent them
  endpoint()->transfer_started();
  ucs_status_ptr_t sent =
      worker().api().am_send_nbx(endpoint()->handle(), frame_sender::message_id, header_.data(),
                                 header_.size(), payload.data(), payload.size(), &params);
  if (UCS_PTR_IS_PTR(sent)) return;
  endpoint()->transfer_ended();
  if (UCS_PTR_IS_ERR(sent)) endpoint()->lost(UCS_PTR_STATUS(sent));
  release();
}

void peer_question::on_sent(void* request, ucs_status_t status, void* self) {
  auto& sent = *static_cast<peer_question*>(self);
  const ucx_callback scope(sent.worker(), request);
  sent.endpoint()->transfer_ended();
  if (status != UCS_OK) sent.endpoint()->lost(status);
  sent.release();
}

}  // namespace ucx::detail
