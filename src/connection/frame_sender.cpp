#include "connection/frame_sender.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "ucp/status.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Idle messages keep room for so many bytes.
constexpr std::size_t largest_kept = 4096;

}  // namespace

frame_sender::~frame_sender() {
  while (outgoing* forgotten = in_flight_.front()) {
    in_flight_.remove(*forgotten);
    outgoing_.give_back(forgotten);
  }
}

result<void> frame_sender::open() {
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  const ucs_status_t status = worker_.api().worker_query(worker_.handle(), &attributes);
  if (status != UCS_OK) {
    return failure{make_error(status), "asking how long the headers of messages may be", status};
  }
  longest_header_ = header_within(attributes.max_am_header);
  return {};
}

void frame_sender::send(endpoint_core& to, const frame& said, std::span<const std::byte> payload,
                        kind what) {
  if (to.handle() == nullptr) return;
  if (worker_.context().log().writes(log_level::trace)) log("sends", said, payload.size());
  outgoing& message = take(to, what, payload);
  said.encode(std::span(message.header).first<frame::size>());
  post(message, message_id, frame::size);
}

void frame_sender::send(endpoint_core& to, const frame& said, owned_descriptor file) {
  outgoing& message = take(to, kind::file, {});
  said.encode(std::span(message.header).first<frame::size>());
  worker_.api().ep_pass_file(to.handle(), std::move(file));
  post(message, message_id, frame::size);
}

frame_sender::outgoing& frame_sender::take(endpoint_core& to, kind what,
                                           std::span<const std::byte> payload) {
  std::unique_ptr<outgoing> taken(outgoing_.take());
  taken->payload.assign(payload.begin(), payload.end());
  outgoing& message = *taken.release();
  in_flight_.push_back(message);
  message.sender = this;
  message.to = &to;
  message.what = what;
  return message;
}

void frame_sender::send_short(endpoint_core& to, std::span<const std::byte> header,
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

void frame_sender::send(endpoint_core& to, const parcel& said) {
  // Withdrawals are this side's own doing, no answers that a peer could pile up.
  const bool replies = said.code != parcel_code::withdrawal;
  if (to.handle() == nullptr || (replies && !to.quota().may_reply())) return;
  outgoing& message = take(to, replies ? kind::reply : kind::plain, {});
  said.encode(std::span(message.header).first<parcel::size>());
  post(message, parcel_id, parcel::size);
}

void frame_sender::post(outgoing& message, unsigned id, std::size_t header_size) {
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  if (message.what == kind::hello) params.flags |= UCP_AM_SEND_FLAG_REPLY;
  // Makes UCX choose its protocols at the beginning, as it does not for what it sends at once. UCX
  // opens a socket to do so: where none is left by then, the connection is lost (1.22).
  if (message.to->state() == endpoint_state::connecting) {
    params.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  }
  params.cb.send = &frame_sender::on_sent;
  params.user_data = &message;
  message.to->transfer_started();
  ucs_status_ptr_t started =
      worker_.api().am_send_nbx(message.to->handle(), id, message.header.data(), header_size,
                                message.payload.data(), message.payload.size(), &params);
  if (!UCS_PTR_IS_PTR(started)) sent(message, UCS_PTR_RAW_STATUS(started));
}

void frame_sender::log(const char* does, const frame& of, std::size_t length) {
  std::array<char, 128> line = {};
  std::snprintf(line.data(), line.size(), "%s frame %u of session %016llx, request %llu, %zu bytes",
                does, static_cast<unsigned>(of.code), static_cast<unsigned long long>(of.session),
                static_cast<unsigned long long>(of.request), length);
  worker_.context().log().write(log_level::trace, line.data());
}

void frame_sender::on_sent(void* request, ucs_status_t status, void* argument) {
  auto& message = *static_cast<outgoing*>(argument);
  const ucx_callback scope(message.sender->worker_, request);
  message.sender->sent(message, status);
}

void frame_sender::sent(outgoing& message, ucs_status_t status) {
  endpoint_core& to = *message.to;
  if (message.what == kind::reply) to.quota().reply_sent();
  if (message.what == kind::hello && status == UCS_OK) to.session().hello_sent();
  if (message.what == kind::file) to.files().passed();
  if (message.what == kind::control) to.control().sent(message.payload.size());
  if (message.payload.capacity() > largest_kept) message.payload = std::vector<std::byte>();
  in_flight_.remove(message);
  outgoing_.give_back(&message);
  to.transfer_ended();
  if (status != UCS_OK) to.lost(status);
}

}  // namespace ucx::detail
