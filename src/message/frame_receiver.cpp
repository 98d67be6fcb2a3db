#include "message/frame_receiver.hpp"

#include <new>

#include "connection/connection_table.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/peer_question.hpp"
#include "message/message_link.hpp"
#include "region/exposed/region_service.hpp"
#include "ucp/status.hpp"
#include "wire/protocol.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

result<void> frame_receiver::open() {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.arg = this;
  const auto take = [&](unsigned id, ucp_am_recv_callback_t by) -> result<void> {
    params.id = id;
    params.cb = by;
    const ucs_status_t status = worker_.api().worker_set_am_recv_handler(worker_.handle(), &params);
    if (status == UCS_OK) return {};
    return failure{make_error(status), "registering the handler for messages"};
  };
  if (auto taken = take(frame_sender::message_id, &frame_receiver::on_message); !taken)
    return taken;
  return take(frame_sender::parcel_id, &frame_receiver::on_parcel);
}

ucs_status_t frame_receiver::on_parcel(void* self, const void* header, std::size_t header_length,
                                       void* data, std::size_t length,
                                       const ucp_am_recv_param_t* params) {
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const frame_receiver& receiver = *static_cast<frame_receiver*>(self);
  const std::span<const std::byte> wire(static_cast<const std::byte*>(header), header_length);
  const std::span<const std::byte> payload(static_cast<const std::byte*>(data), length);
  void* const lasting = (params->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 ? data : nullptr;
  bool kept = false;
  if (is_brief(wire)) {
    if (const auto read = decode_brief_parcel(wire)) {
      kept = receiver.deliver(*read, read->said.session, payload, lasting);
    }
  } else if (const auto read = decode_parcel(wire, length)) {
    kept = receiver.deliver(*read, read->said.session, payload, lasting);
  }
  return kept ? UCS_INPROGRESS : UCS_OK;
}

template <class Parcel>
bool frame_receiver::deliver(const Parcel& read, std::uint64_t session,
                             std::span<const std::byte> payload, void* lasting) const noexcept {
  endpoint_core* const from = worker_.connections().find(session);
  if (from == nullptr || !from->listens()) return false;
  from->liveness().heard();
  worker_.connections().turns().others_ask();
  try {
    return from->messages().received(read, payload, lasting);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX; and nothing was kept
    from->messages().blame_memory();
    return false;
  }
}

ucs_status_t frame_receiver::on_message(void* self, const void* header, std::size_t header_length,
                                        void* data, std::size_t length,
                                        const ucp_am_recv_param_t* params) {
  // Rendezvous is not of the protocol: returning OK makes UCX let go of the message.
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto heard = decode_frame({static_cast<const std::byte*>(header), header_length});
  if (!heard) return UCS_OK;
  frame_receiver& receiver = *static_cast<frame_receiver*>(self);
  try {
    if (receiver.worker_.context().log().writes(log_level::trace))
      receiver.worker_.sender().log("hears", *heard, length);
    receiver.received(*heard, {static_cast<const std::byte*>(data), length}, *params);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX
    endpoint_core* const from = heard->code == opcode::hello
                                    ? nullptr
                                    : receiver.worker_.connections().find(heard->session);
    if (from != nullptr) from->blame(errc::no_memory, "no memory for what the peer says");
  }
  return UCS_OK;
}

void frame_receiver::received(const frame& heard, std::span<const std::byte> payload,
                              const ucp_am_recv_param_t& params) {
  if (heard.code == opcode::hello) {
    const bool has_endpoint = (params.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    worker_.connections().served().hello(heard, payload, has_endpoint ? params.reply_ep : nullptr);
    return;
  }
  endpoint_core* from = worker_.connections().find(heard.session);
  if (from == nullptr) return;  // of a connection that is over
  from->liveness().heard();
  if (heard.code == opcode::welcome) {
    from->session().welcomed(heard, payload);
    return;
  }
  if (heard.version == protocol_version_number && from->listens()) route(*from, heard, payload);
}

void frame_receiver::route(endpoint_core& from, const frame& heard,
                           std::span<const std::byte> payload) {
  if (heard.code != opcode::control) worker_.connections().turns().others_ask();
  switch (heard.code) {
    case opcode::data:
    case opcode::written:
    case opcode::performed:
    case opcode::notified: {
      peer_question* asked = worker_.sender().questions().find(heard.request);
      // A question that was not sent yet can not be answered.
      if (asked != nullptr && asked->endpoint() == &from && asked->was_asked) {
        asked->answered(heard, payload);
      }
      break;
    }
    case opcode::read:
      worker_.service().read(from, heard);
      break;
    case opcode::write:
      worker_.service().write(from, heard, payload);
      break;
    case opcode::atomic:
      worker_.service().extras().perform_atomic(from, heard, payload);
      break;
    case opcode::read_batch:
      worker_.service().extras().read_batch(from, heard, payload);
      break;
    case opcode::write_batch:
      worker_.service().extras().write_batch(from, heard, payload);
      break;
    case opcode::notify:
      worker_.service().extras().notify(from, heard);
      break;
    case opcode::ping: {
      frame alive;
      alive.code = opcode::pong;
      alive.session = from.session().number();
      from.reply(alive);
      break;
    }
    case opcode::bye:
      from.session().peer_said_bye(heard.status == 0 ? std::error_code()
                                                     : make_error_code(errc::connection_reset));
      break;
    case opcode::farewell:
      from.session().peer_said_farewell();
      break;
    case opcode::control:
      from.control().arrived(heard.length, payload);
      break;
    case opcode::pong:
      from.liveness().answered();
      break;
    case opcode::hello:
    case opcode::welcome:
      break;
  }
}

}  // namespace ucx::detail
