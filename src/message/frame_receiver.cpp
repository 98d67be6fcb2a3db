#include "message/frame_receiver.hpp"

#include <new>
#include <utility>

#include "connection/connection_table.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/peer_question.hpp"
#include "message/message_link.hpp"
#include "region/exposed/region_service.hpp"
#include "ucp/status.hpp"
#include "wire/protocol.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

frame_receiver::frame_receiver(worker_core& worker) noexcept
    : worker_(worker), is_of_ucx_(worker.context().is_of_ucx()) {}

result<void> frame_receiver::open() {
  ucs_status_t status = take(frame_sender::message_id, &frame_receiver::on_message);
  takes_frames_ = status == UCS_OK;
  if (takes_frames_) status = take(frame_sender::parcel_id, &frame_receiver::on_parcel);
  takes_parcels_ = status == UCS_OK;
  if (takes_parcels_) return {};
  return failure{make_error(status), "registering the handler for messages", status};
}

void frame_receiver::close() noexcept {
  if (std::exchange(takes_frames_, false)) take(frame_sender::message_id, nullptr);
  if (std::exchange(takes_parcels_, false)) take(frame_sender::parcel_id, nullptr);
}

ucs_status_t frame_receiver::take(unsigned id, ucp_am_recv_callback_t by) noexcept {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.cb = by;
  params.arg = this;
  return worker_.api().worker_set_am_recv_handler(worker_.handle(), &params);
}

ucs_status_t frame_receiver::on_parcel(void* self, const void* header, std::size_t header_length,
                                       void* data, std::size_t length,
                                       const ucp_am_recv_param_t* params) {
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const frame_receiver& receiver = *static_cast<frame_receiver*>(self);
  const ucx_callback scope(receiver.worker_);
  const std::span<const std::byte> wire(static_cast<const std::byte*>(header), header_length);
  const std::span<const std::byte> payload(static_cast<const std::byte*>(data), length);
  bool kept = false;
  if (is_brief(wire)) {
    if (const auto read = decode_brief_parcel(wire)) {
      kept = receiver.deliver(*read, read->said.session, payload, *params);
    }
  } else if (const auto read = decode_parcel(wire, length)) {
    kept = receiver.deliver(*read, read->said.session, payload, *params);
  }
  return kept ? UCS_INPROGRESS : UCS_OK;
}

template <class Parcel>
bool frame_receiver::deliver(const Parcel& read, std::uint64_t session,
                             std::span<const std::byte> payload,
                             const ucp_am_recv_param_t& params) const noexcept {
  endpoint_core* const from =
      is_of_ucx_ ? worker_.connections().find(session) : sender(session, params);
  if (from == nullptr || !from->listens()) return false;
  from->liveness().heard();
  worker_.connections().turns().others_ask();
  try {
    const bool lasts = (params.recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    void* const lasting = lasts ? const_cast<std::byte*>(payload.data()) : nullptr;
    return from->messages().received(read, payload, lasting);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX; and nothing was kept
    from->messages().blame_memory();
    return false;
  }
}

endpoint_core* frame_receiver::sender(std::uint64_t session,
                                      const ucp_am_recv_param_t& params) const noexcept {
  if (is_of_ucx_) return worker_.connections().find(session);
  endpoint_core* const from = worker_.connections().find_over(params.reply_ep);
  if (from == nullptr || from->session().number() == session) return from;
  from->blame(errc::protocol_error, "it names the session of another connection");
  return nullptr;
}

ucs_status_t frame_receiver::on_message(void* self, const void* header, std::size_t header_length,
                                        void* data, std::size_t length,
                                        const ucp_am_recv_param_t* params) {
  auto heard = decode_frame({static_cast<const std::byte*>(header), header_length});
  if (!heard) return UCS_OK;
  frame_receiver& receiver = *static_cast<frame_receiver*>(self);
  const ucx_callback scope(receiver.worker_);
  try {
    if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
      // It is not of the protocol over UCX, which lets go of the message when this returns.
      if (!receiver.is_of_ucx_) receiver.begins(*heard, data, length, *params);
      return UCS_OK;
    }
    if (receiver.worker_.context().log().writes(log_level::trace))
      receiver.worker_.sender().log("hears", *heard, length);
    receiver.received(*heard, {static_cast<const std::byte*>(data), length}, *params);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX
    endpoint_core* const from =
        heard->code == opcode::hello ? nullptr : receiver.sender(heard->session, *params);
    if (from != nullptr) from->blame(errc::no_memory, "no memory for what the peer says");
  }
  return UCS_OK;
}

void frame_receiver::received(frame& heard, std::span<const std::byte> payload,
                              const ucp_am_recv_param_t& params) {
  if (heard.code == opcode::hello) {
    const bool has_endpoint = (params.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
    worker_.connections().served().hello(heard, payload, has_endpoint ? params.reply_ep : nullptr);
    return;
  }
  endpoint_core* from = sender(heard.session, params);
  if (from == nullptr) return;  // of a connection that is over
  from->liveness().heard();
  heard.session = from->session().number();  // of answers, which take it from here
  if (heard.code == opcode::welcome) {
    from->session().welcomed(heard, payload);
    return;
  }
  if (heard.version == protocol_version_number && from->listens()) route(*from, heard, payload);
}

void frame_receiver::begins(const frame& heard, void* descriptor, std::size_t size,
                            const ucp_am_recv_param_t& params) {
  if (heard.code != opcode::data || heard.version != protocol_version_number) return;
  endpoint_core* const from = sender(heard.session, params);
  if (from == nullptr || !from->listens()) return;
  from->liveness().heard();
  peer_question* const asked = answered_by(*from, heard);
  if (asked == nullptr) return;
  const std::span<std::byte> place = asked->landing_of(heard, size);
  if (place.empty()) return;
  const ucp_request_param_t plain = {};
  ucs_status_ptr_t const taken = worker_.api().am_recv_data_nbx(worker_.handle(), descriptor,
                                                                place.data(), place.size(), &plain);
  if (UCS_PTR_IS_PTR(taken)) asked->arrival = taken;
}

peer_question* frame_receiver::answered_by(const endpoint_core& from,
                                           const frame& heard) const noexcept {
  peer_question* const asked = worker_.sender().questions().find(heard.request);
  // A question that was not sent yet can not be answered.
  const bool is_answered = asked != nullptr && asked->endpoint() == &from && asked->was_asked;
  return is_answered ? asked : nullptr;
}

void frame_receiver::route(endpoint_core& from, const frame& heard,
                           std::span<const std::byte> payload) {
  if (heard.code != opcode::control) worker_.connections().turns().others_ask();
  switch (heard.code) {
    case opcode::data:
    case opcode::written:
    case opcode::performed:
    case opcode::notified: {
      if (peer_question* const asked = answered_by(from, heard)) asked->answered(heard, payload);
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
    case opcode::pass_file:
      from.files().arrived(heard, worker_.api().ep_passed_file(from.handle()));
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
