#include "detail/message_router.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <new>

#include "detail/connection_table.hpp"
#include "detail/control_turns.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/message_link.hpp"
#include "detail/protocol.hpp"
#include "detail/region_service.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Idle messages keep room for so many bytes.
constexpr std::size_t largest_kept = 4096;

}  // namespace

message_router::~message_router() {
  while (outgoing* forgotten = in_flight_.front()) {
    in_flight_.remove(*forgotten);
    outgoing_.give_back(forgotten);
  }
}

void message_router::open(std::error_code& ec) {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = message_id;
  params.cb = &message_router::on_message;
  params.arg = this;
  ec = make_error(worker_.api().worker_set_am_recv_handler(worker_.handle(), &params));
  if (ec) return;
  params.id = parcel_id;
  params.cb = &message_router::on_parcel;
  ec = make_error(worker_.api().worker_set_am_recv_handler(worker_.handle(), &params));
  if (ec) return;
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  ec = make_error(worker_.api().worker_query(worker_.handle(), &attributes));
  if (ec) return;
  const std::size_t most = attributes.max_am_header;
  longest_header_ = header_within(most);
}

ucs_status_t message_router::on_parcel(void* self, const void* header, std::size_t header_length,
                                       void* data, std::size_t length,
                                       const ucp_am_recv_param_t* params) {
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const message_router& router = *static_cast<message_router*>(self);
  const std::span<const std::byte> wire(static_cast<const std::byte*>(header), header_length);
  const std::span<const std::byte> payload(static_cast<const std::byte*>(data), length);
  void* const lasting = (params->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 ? data : nullptr;
  bool kept = false;
  if (is_brief(wire)) {
    if (const auto read = decode_brief_parcel(wire)) {
      kept = router.deliver(*read, read->said.session, payload, lasting);
    }
  } else if (const auto read = decode_parcel(wire, length)) {
    kept = router.deliver(*read, read->said.session, payload, lasting);
  }
  return kept ? UCS_INPROGRESS : UCS_OK;
}

template <class Parcel>
bool message_router::deliver(const Parcel& read, std::uint64_t session,
                             std::span<const std::byte> payload, void* lasting) const noexcept {
  endpoint_core* const from = worker_.connections().find(session);
  if (from == nullptr || !from->listens()) return false;
  from->heard();
  worker_.connections().turns().others_ask();
  try {
    return from->messages().received(read, payload, lasting);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX; and nothing was kept
    from->messages().blame_memory();
    return false;
  }
}

ucs_status_t message_router::on_message(void* self, const void* header, std::size_t header_length,
                                        void* data, std::size_t length,
                                        const ucp_am_recv_param_t* params) {
  // Rendezvous is not of the protocol: returning OK makes UCX let go of the message.
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto heard = decode_frame({static_cast<const std::byte*>(header), header_length});
  if (!heard) return UCS_OK;
  message_router& router = *static_cast<message_router*>(self);
  try {
    if (router.worker_.context().log().writes(log_level::trace))
      router.log("hears", *heard, length);
    router.received(*heard, {static_cast<const std::byte*>(data), length}, *params);
  } catch (const std::bad_alloc&) {  // nothing may leave through UCX
    endpoint_core* const from =
        heard->code == opcode::hello ? nullptr : router.worker_.connections().find(heard->session);
    if (from != nullptr) from->blame(errc::no_memory, "no memory for what the peer says");
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
    from->welcomed(heard, payload);
    return;
  }
  if (heard.version == protocol_version_number && from->listens()) route(*from, heard, payload);
}

void message_router::route(endpoint_core& from, const frame& heard,
                           std::span<const std::byte> payload) {
  if (heard.code != opcode::control) worker_.connections().turns().others_ask();
  switch (heard.code) {
    case opcode::data:
    case opcode::written:
    case opcode::performed:
    case opcode::notified: {
      message_operation* asked = questions_.find(heard.request);
      // What still waits to be asked has nothing to be answered.
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
      worker_.service().perform_atomic(from, heard, payload);
      break;
    case opcode::read_batch:
      worker_.service().read_batch(from, heard, payload);
      break;
    case opcode::write_batch:
      worker_.service().write_batch(from, heard, payload);
      break;
    case opcode::notify:
      worker_.service().notify(from, heard);
      break;
    case opcode::ping: {
      frame alive;
      alive.code = opcode::pong;
      alive.session = from.session();
      from.reply(alive);
      break;
    }
    case opcode::bye:
      from.peer_said_bye(heard.status == 0 ? std::error_code()
                                           : make_error_code(errc::connection_reset));
      break;
    case opcode::farewell:
      from.peer_said_farewell();
      break;
    case opcode::control:
      from.control_arrived(heard.length, payload);
      break;
    case opcode::pong:
    case opcode::hello:
    case opcode::welcome:
      break;
  }
}

void message_router::send(endpoint_core& to, const frame& said, std::span<const std::byte> payload,
                          kind what) {
  if (to.handle() == nullptr) return;
  if (worker_.context().log().writes(log_level::trace)) log("sends", said, payload.size());
  outgoing& message = take(to, what, payload);
  said.encode(std::span(message.header).first<frame::size>());
  post(message, message_id, frame::size);
}

message_router::outgoing& message_router::take(endpoint_core& to, kind what,
                                               std::span<const std::byte> payload) {
  std::unique_ptr<outgoing> taken(outgoing_.take());
  taken->payload.assign(payload.begin(), payload.end());
  outgoing& message = *taken.release();
  in_flight_.push_back(message);
  message.router = this;
  message.to = &to;
  message.what = what;
  return message;
}

void message_router::send(endpoint_core& to, const parcel& said) {
  // Withdrawals are this side's own doing, no answers that a peer could pile up.
  const bool replies = said.code != parcel_code::withdrawal;
  if (to.handle() == nullptr || (replies && !to.may_reply())) return;
  outgoing& message = take(to, replies ? kind::reply : kind::plain, {});
  said.encode(std::span(message.header).first<parcel::size>());
  post(message, parcel_id, parcel::size);
}

void message_router::post(outgoing& message, unsigned id, std::size_t header_size) {
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  if (message.what == kind::hello) params.flags |= UCP_AM_SEND_FLAG_REPLY;
  // Makes UCX choose its protocols at the beginning, as it does not for what it sends at once: it
  // opens a socket to do so, and where none is left then, the connection is lost (1.22).
  if (message.to->state() == endpoint_state::connecting) {
    params.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  }
  params.cb.send = &message_router::on_sent;
  params.user_data = &message;
  message.to->transfer_started();
  ucs_status_ptr_t started =
      worker_.api().am_send_nbx(message.to->handle(), id, message.header.data(), header_size,
                                message.payload.data(), message.payload.size(), &params);
  if (!UCS_PTR_IS_PTR(started)) sent(message, UCS_PTR_RAW_STATUS(started));
}

void message_router::log(const char* does, const frame& of, std::size_t length) {
  std::array<char, 128> line = {};
  std::snprintf(line.data(), line.size(), "%s frame %u of session %016llx, request %llu, %zu bytes",
                does, static_cast<unsigned>(of.code), static_cast<unsigned long long>(of.session),
                static_cast<unsigned long long>(of.request), length);
  worker_.context().log().write(log_level::trace, line.data());
}

void message_router::on_sent(void* request, ucs_status_t status, void* argument) {
  auto& message = *static_cast<outgoing*>(argument);
  message.router->worker_.api().request_free(request);
  message.router->sent(message, status);
}

void message_router::sent(outgoing& message, ucs_status_t status) {
  endpoint_core& to = *message.to;
  if (message.what == kind::reply) to.reply_sent();
  if (message.what == kind::hello && status == UCS_OK) to.hello_sent();
  if (message.what == kind::control) to.control_sent(message.payload.size());
  if (message.payload.capacity() > largest_kept) message.payload = std::vector<std::byte>();
  in_flight_.remove(message);
  outgoing_.give_back(&message);
  to.transfer_ended();
  if (status != UCS_OK) to.lost(status);
}

}  // namespace ucx::detail
