#include "support/simulated/frame_peer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "connection/frame_sender.hpp"
#include "support/fake_ucp/callback_scope.hpp"
#include "wire/introduction.hpp"

namespace ucx::test {

using detail::frame;
using detail::opcode;

struct frame_peer::message {
  frame_peer* peer = nullptr;
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
};

frame_peer::frame_peer(fake_network& network, std::string name)
    : raw_peer(network, std::move(name)) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = detail::frame_sender::message_id;
  params.cb = &frame_peer::on_message;
  params.arg = this;
  EXPECT_EQ(api.worker_set_am_recv_handler(worker, &params), UCS_OK);
  params.id = detail::frame_sender::parcel_id;
  params.cb = &frame_peer::on_parcel;
  EXPECT_EQ(api.worker_set_am_recv_handler(worker, &params), UCS_OK);
}

frame_peer::~frame_peer() {
  on_frame = {};
  welcomes_ = false;
  for (const ucp_ep_h each : opened_) close(each);
  // Requests of messages that were on their way end with the endpoint.
  EXPECT_TRUE(wait([&] { return messages_.empty(); }));
}

ucs_status_t frame_peer::on_message(void* self, const void* header, std::size_t header_length,
                                    void* data, std::size_t length,
                                    const ucp_am_recv_param_t* params) {
  const callback_scope outside(false);  // what runs here is the test's
  auto& peer = *static_cast<frame_peer*>(self);
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    ADD_FAILURE() << "a message by rendezvous, which the protocol does not have";
    return UCS_OK;
  }
  const auto said = detail::decode_frame({static_cast<const std::byte*>(header), header_length});
  if (!said) {
    ++peer.unreadable;
    return UCS_OK;
  }
  const auto* const bytes = static_cast<const std::byte*>(data);
  heard_frame taken{*said, std::vector<std::byte>(bytes, bytes + length)};
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) taken.reply_to = params->reply_ep;
  peer.heard.push_back(taken);
  if (said->code == opcode::hello && peer.welcomes_) peer.answer_hello(taken);
  if (peer.on_frame) peer.on_frame(taken);
  return UCS_OK;
}

ucs_status_t frame_peer::on_parcel(void* self, const void* header, std::size_t header_length,
                                   void* data, std::size_t length, const ucp_am_recv_param_t*) {
  const callback_scope outside(false);
  auto& peer = *static_cast<frame_peer*>(self);
  const auto read =
      detail::decode_parcel({static_cast<const std::byte*>(header), header_length}, length);
  if (!read) {
    ++peer.unreadable;
    return UCS_OK;
  }
  const auto* const bytes = static_cast<const std::byte*>(data);
  peer.parcels.push_back(
      {read->said, {read->header.begin(), read->header.end()}, {bytes, bytes + length}});
  return UCS_OK;
}

void frame_peer::on_sent(void* request, ucs_status_t, void* sent) {
  auto& peer = *static_cast<message*>(sent)->peer;
  peer.api.request_free(request);
  std::erase_if(peer.messages_, [&](const auto& each) { return each.get() == sent; });
}

worker_address frame_peer::its_address() { return worker_address::from_native(address()); }

ucp_ep_h frame_peer::reach(const worker_address& peer) {
  const std::span<const std::byte> native = peer.native();
  return opened_.emplace_back(connect(std::vector<std::byte>(native.begin(), native.end())));
}

ucp_ep_h frame_peer::reach(std::uint16_t port) { return opened_.emplace_back(connect(port)); }

ucp_ep_h frame_peer::take(ucp_conn_request_h request) {
  return opened_.emplace_back(accept(request));
}

void frame_peer::say(ucp_ep_h to, const frame& said, std::span<const std::byte> payload,
                     std::uint32_t flags) {
  frame::bytes header;
  said.encode(header);
  say_bytes(to, header, payload, flags);
}

void frame_peer::say(ucp_ep_h to, const detail::parcel& said,
                     std::span<const std::byte> user_header, std::span<const std::byte> payload) {
  std::vector<std::byte> header(detail::parcel::size);
  said.encode(std::span(header).first<detail::parcel::size>());
  header.insert(header.end(), user_header.begin(), user_header.end());
  say_bytes(to, header, payload, UCP_AM_SEND_FLAG_EAGER, detail::frame_sender::parcel_id);
}

void frame_peer::say_bytes(ucp_ep_h to, std::span<const std::byte> header,
                           std::span<const std::byte> payload, std::uint32_t flags, unsigned id) {
  auto& sent = *messages_.emplace_back(std::make_unique<message>());
  sent.peer = this;
  sent.header.assign(header.begin(), header.end());
  sent.payload.assign(payload.begin(), payload.end());
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = flags;
  params.cb.send = &frame_peer::on_sent;
  params.user_data = &sent;
  const ucs_status_ptr_t started =
      api.am_send_nbx(to, id, sent.header.data(), sent.header.size(), sent.payload.data(),
                      sent.payload.size(), &params);
  if (!UCS_PTR_IS_PTR(started)) {
    std::erase_if(messages_, [&](const auto& each) { return each.get() == &sent; });
  }
}

worker_address frame_peer::heard_frame::address() const {
  const detail::greeting read = detail::read_greeting(payload);
  return read.address.empty() ? worker_address() : worker_address::decode(read.address);
}

bool frame_peer::open_session(ucp_ep_h to, std::uint64_t session) {
  frame hello;
  hello.code = opcode::hello;
  hello.session = session;
  hello.length = room;
  say(to, hello, introduced(its_address().encode()), UCP_AM_SEND_FLAG_REPLY);
  heard_frame answer;
  if (!await(opcode::welcome, answer)) return false;
  granted = answer.said.length;
  return answer.said.session == session && answer.said.status == 0;
}

std::vector<std::byte> frame_peer::introduced(std::vector<std::byte> greeting) const {
  if (!lends) return greeting;
  const std::vector<std::byte> said = detail::introduction{.lends = true}.encode();
  greeting.insert(greeting.end(), said.begin(), said.end());
  return greeting;
}

void frame_peer::welcome_everybody() { welcomes_ = true; }

void frame_peer::answer_hello(const heard_frame& hello) {
  guest_session = hello.said.session;
  const worker_address back = hello.address();
  guest = back.empty() ? hello.reply_to : reach(back);
  frame answer;
  answer.code = opcode::welcome;
  answer.session = hello.said.session;
  answer.length = room;
  granted = hello.said.length;
  say(guest, answer, introduced());
}

bool frame_peer::await(opcode code, heard_frame& into, std::chrono::nanoseconds limit) {
  auto found = heard.end();
  const bool came = wait(
      [&] {
        found = std::find_if(heard.begin(), heard.end(),
                             [&](const heard_frame& each) { return each.said.code == code; });
        return found != heard.end();
      },
      limit);
  if (!came) return false;
  into = std::move(*found);
  heard.erase(found);
  return true;
}

bool frame_peer::await(detail::parcel_code code, heard_parcel& into,
                       std::chrono::nanoseconds limit) {
  auto found = parcels.end();
  const bool came = wait(
      [&] {
        found = std::find_if(parcels.begin(), parcels.end(),
                             [&](const heard_parcel& each) { return each.said.code == code; });
        return found != parcels.end();
      },
      limit);
  if (!came) return false;
  into = std::move(*found);
  parcels.erase(found);
  return true;
}

std::size_t frame_peer::count(opcode code) const {
  return static_cast<std::size_t>(std::count_if(
      heard.begin(), heard.end(), [&](const heard_frame& each) { return each.said.code == code; }));
}

}  // namespace ucx::test
