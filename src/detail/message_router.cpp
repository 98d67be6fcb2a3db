#include "detail/message_router.hpp"

#include "detail/connection_table.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/protocol.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

void message_router::open(std::error_code& ec) {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = message_id;
  params.cb = &message_router::on_message;
  params.arg = this;
  ec = make_error(worker_.api().worker_set_am_recv_handler(worker_.handle(), &params));
}

ucs_status_t message_router::on_message(void* self, const void* header, std::size_t header_length,
                                        void* data, std::size_t length,
                                        const ucp_am_recv_param_t* params) {
  // Rendezvous is not of the protocol: returning OK makes UCX let go of the message.
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto heard = decode_frame({static_cast<const std::byte*>(header), header_length});
  if (heard) {
    static_cast<message_router*>(self)->received(
        *heard, {static_cast<const std::byte*>(data), length}, *params);
  }
  return UCS_OK;
}

void message_router::received(const frame& heard, std::span<const std::byte> payload,
                              const ucp_am_recv_param_t& params) {
  if (heard.code == opcode::hello) {
    const bool has_endpoint = (params.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    worker_.connections().hello(heard, payload, has_endpoint ? params.reply_ep : nullptr);
    return;
  }
  endpoint_core* from = worker_.connections().find(heard.session);
  if (from == nullptr) return;  // of a connection that is over
  from->heard();
  if (heard.code == opcode::welcome) {
    from->welcomed(heard.version == protocol_version_number
                       ? status_error(heard.status)
                       : make_error_code(errc::version_mismatch),
                   heard.version);
    return;
  }
  if (heard.version == protocol_version_number) route(*from, heard, payload);
}

void message_router::route(endpoint_core& from, const frame& heard,
                           std::span<const std::byte> payload) {
  switch (heard.code) {
    case opcode::data:
    case opcode::written: {
      message_operation* asked = questions_.find(heard.request);
      if (asked != nullptr && asked->endpoint() == &from) asked->answered(heard, payload);
      break;
    }
    case opcode::read:
      worker_.service().read(from, heard);
      break;
    case opcode::write:
      worker_.service().write(from, heard, payload);
      break;
    case opcode::ping: {
      frame alive;
      alive.code = opcode::pong;
      alive.session = from.session();
      send(from, alive);
      break;
    }
    case opcode::bye:
      from.peer_said_bye();
      break;
    case opcode::farewell:
      from.peer_said_farewell();
      break;
    case opcode::pong:
    case opcode::hello:
    case opcode::welcome:
      break;
  }
}

void message_router::send(endpoint_core& to, const frame& said, std::span<const std::byte> payload,
                          bool with_reply_endpoint) {
  if (to.handle() == nullptr) return;
  outgoing* message = outgoing_.take();
  message->router = this;
  message->to = &to;
  said.encode(message->header);
  message->payload.assign(payload.begin(), payload.end());
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  if (with_reply_endpoint) params.flags |= UCP_AM_SEND_FLAG_REPLY;
  params.cb.send = &message_router::on_sent;
  params.user_data = message;
  to.transfer_started();
  ucs_status_ptr_t started = worker_.api().am_send_nbx(
      to.handle(), message_id, message->header.data(), message->header.size(),
      message->payload.data(), message->payload.size(), &params);
  if (!UCS_PTR_IS_PTR(started)) sent(*message, UCS_PTR_RAW_STATUS(started));
}

void message_router::on_sent(void* request, ucs_status_t status, void* argument) {
  auto& message = *static_cast<outgoing*>(argument);
  message.router->worker_.api().request_free(request);
  message.router->sent(message, status);
}

void message_router::sent(outgoing& message, ucs_status_t status) {
  endpoint_core& to = *message.to;
  outgoing_.give_back(&message);
  to.transfer_ended();
  if (status != UCS_OK) to.lost(status);
}

}  // namespace ucx::detail
