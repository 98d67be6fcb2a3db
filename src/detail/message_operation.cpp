#include "detail/message_operation.hpp"

#include <string>
#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/message_sender.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

void message_operation::enter(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                              std::uint64_t length, clock::time_point deadline,
                              unsigned further_references) {
  region_ = std::move(region);
  offset_ = offset;
  length_ = length;
  endpoint_core& connection = region_->endpoint();
  worker_core& worker = connection.worker();
  id_ = worker.sender().questions().add(*this);
  entered_ = true;
  start(worker, connection.shared_from_this(), deadline);
  for (unsigned i = 0; i < further_references; ++i) retain();
  connection.operations().add(*this);
}

void message_operation::leave() noexcept {
  if (!std::exchange(entered_, false)) return;
  worker().sender().questions().remove(id_);
  endpoint()->operations().remove(*this);
}

void message_operation::blame_peer(const char* what) {
  endpoint()->blame(errc::protocol_error, what);
}

frame message_operation::question(opcode code) const noexcept {
  const remote_descriptor& target = region_->descriptor();
  frame asked;
  asked.code = code;
  asked.session = endpoint()->session();
  asked.request = id_;
  asked.region = target.region;
  asked.incarnation = target.incarnation;
  asked.generation = target.generation;
  return asked;
}

void message_operation::send_question(const frame& asked, std::span<const std::byte> payload) {
  asked.encode(header_);
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &message_operation::on_sent;
  params.user_data = this;
  retain();  // header and payload have to live until UCX has sent them
  endpoint()->transfer_started();
  ucs_status_ptr_t sent =
      worker().api().am_send_nbx(endpoint()->handle(), message_sender::message_id, header_.data(),
                                 header_.size(), payload.data(), payload.size(), &params);
  if (UCS_PTR_IS_PTR(sent)) return;
  endpoint()->transfer_ended();
  if (UCS_PTR_IS_ERR(sent)) endpoint()->lost(UCS_PTR_STATUS(sent));
  release();
}

void message_operation::on_sent(void* request, ucs_status_t status, void* self) {
  auto& sent = *static_cast<message_operation*>(self);
  sent.worker().api().request_free(request);
  sent.endpoint()->transfer_ended();
  if (status != UCS_OK) sent.endpoint()->lost(status);
  sent.release();
}

std::string message_operation::describe() const {
  return std::to_string(length_) + " bytes at offset " + std::to_string(offset_) + " of " +
         region_->description();
}

}  // namespace ucx::detail
