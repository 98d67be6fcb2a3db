#include "support/simulated/raw_peer.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>

#include "support/fake_ucp/callback_scope.hpp"

namespace ucx::test {

struct raw_peer::operation {
  raw_peer* peer;
  outcome result;
  std::string header;  // as long as the operation lasts
  std::string bytes;
};

namespace {

void on_failure(void* peer, ucp_ep_h, ucs_status_t status) {
  auto& self = *static_cast<raw_peer*>(peer);
  const callback_scope outside(false);  // what runs here is the test's
  self.failures.push_back(status);
  if (self.on_failed) self.on_failed();
}

void on_connect(ucp_conn_request_h request, void* peer) {
  static_cast<raw_peer*>(peer)->requests.push_back(request);
}

ucs_status_t on_message(void* peer, const void* header, std::size_t header_length, void* data,
                        std::size_t length, const ucp_am_recv_param_t* parameters) {
  auto& self = *static_cast<raw_peer*>(peer);
  raw_peer::message message;
  message.header.assign(static_cast<const char*>(header), header_length);
  message.rndv = (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  message.data = data;
  if (!message.rndv) message.bytes.assign(static_cast<const char*>(data), length);
  if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
    message.reply_to = parameters->reply_ep;
  }
  self.messages.push_back(std::move(message));
  return self.handler_returns;
}

}  // namespace

raw_peer::raw_peer(fake_network& network, std::string name, std::uint64_t features,
                   ucs_thread_mode_t threads,
                   const std::vector<std::pair<std::string, std::string>>& settings)
    : process(network.add_process(std::move(name))), api(process.api()) {
  ucp_config_t* configuration = nullptr;
  EXPECT_EQ(api.config_read(nullptr, nullptr, &configuration), UCS_OK);
  for (const auto& [setting, value] : settings) {
    EXPECT_EQ(api.config_modify(configuration, setting.c_str(), value.c_str()), UCS_OK);
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = features;
  EXPECT_EQ(api.init(&parameters, configuration, &context), UCS_OK);
  api.config_release(configuration);
  ucp_worker_params_t of_worker{};
  of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  of_worker.thread_mode = threads;
  EXPECT_EQ(api.worker_create(context, &of_worker, &worker), UCS_OK);
  if ((features & UCP_FEATURE_AM) != 0) set_handler();
  process.on_pump([this] { progress(); });
}

raw_peer::~raw_peer() {
  process.on_pump({});
  for (const auto& each : operations_) {
    if (each->result.request != nullptr) api.request_free(each->result.request);
  }
  if (listener != nullptr) api.listener_destroy(listener);
  api.worker_destroy(worker);
  api.cleanup(context);
}

void raw_peer::set_handler() {
  ucp_am_handler_param_t parameters{};
  parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  parameters.id = message_id;
  parameters.cb = on_message;
  parameters.arg = this;
  parameters.flags = handler_flags;
  EXPECT_EQ(api.worker_set_am_recv_handler(worker, &parameters), UCS_OK);
}

std::vector<std::byte> raw_peer::address() {
  ucp_address_t* native = nullptr;
  std::size_t length = 0;
  EXPECT_EQ(api.worker_get_address(worker, &native, &length), UCS_OK);
  const auto* const bytes = reinterpret_cast<const std::byte*>(native);
  std::vector<std::byte> copy(bytes, bytes + length);
  api.worker_release_address(worker, native);
  return copy;
}

ucp_ep_h raw_peer::connect(const std::vector<std::byte>& to, ucp_err_handling_mode_t mode) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(to.data());
  parameters.err_mode = mode;
  parameters.err_handler = {on_failure, this};
  ucp_ep_h endpoint = nullptr;
  EXPECT_EQ(api.ep_create(worker, &parameters, &endpoint), UCS_OK);
  return endpoint;
}

ucp_ep_h raw_peer::connect(std::uint16_t port, const char* host) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, host, &to.sin_addr), 1);
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&to), sizeof(to)};
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {on_failure, this};
  ucp_ep_h endpoint = nullptr;
  EXPECT_EQ(api.ep_create(worker, &parameters, &endpoint), UCS_OK);
  return endpoint;
}

ucp_ep_h raw_peer::accept(ucp_conn_request_h request) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.conn_request = request;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {on_failure, this};
  ucp_ep_h endpoint = nullptr;
  EXPECT_EQ(api.ep_create(worker, &parameters, &endpoint), UCS_OK);
  return endpoint;
}

std::uint16_t raw_peer::listen(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ucp_listener_params_t parameters{};
  parameters.field_mask =
      UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&at), sizeof(at)};
  parameters.conn_handler = {on_connect, this};
  EXPECT_EQ(api.listener_create(worker, &parameters, &listener), UCS_OK);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  EXPECT_EQ(api.listener_query(listener, &attributes), UCS_OK);
  return ntohs(reinterpret_cast<const sockaddr_in&>(attributes.sockaddr).sin_port);
}

void raw_peer::close(ucp_ep_h endpoint) {
  const auto& closing = start_close(endpoint, UCP_EP_CLOSE_FLAG_FORCE);
  EXPECT_TRUE(wait(closing));
}

outcome& raw_peer::track(const std::function<ucs_status_ptr_t(ucp_request_param_t&)>& call,
                         bool receives, std::uint32_t flags) {
  auto& started = *operations_.emplace_back(std::make_unique<operation>());
  started.peer = this;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = flags;
  parameters.user_data = &started;
  if (receives) {
    parameters.cb.recv_am = [](void*, ucs_status_t status, std::size_t length, void* self) {
      auto& own = *static_cast<operation*>(self);
      own.result.status = status;
      own.result.length = length;
      own.peer->ended.push_back(&own.result);
    };
  } else {
    parameters.cb.send = [](void*, ucs_status_t status, void* self) {
      auto& own = *static_cast<operation*>(self);
      own.result.status = status;
      own.peer->ended.push_back(&own.result);
    };
  }
  const auto answer = call(parameters);
  if (UCS_PTR_IS_PTR(answer)) {
    started.result.request = answer;
  } else {
    started.result.status = UCS_PTR_RAW_STATUS(answer);
    started.result.at_once = true;
  }
  return started.result;
}

outcome& raw_peer::send(ucp_ep_h endpoint, const std::string& header, const std::string& bytes,
                        std::uint32_t flags) {
  return track(
      [&](ucp_request_param_t& parameters) {
        auto& own = *static_cast<operation*>(parameters.user_data);
        own.header = header;
        own.bytes = bytes;
        return api.am_send_nbx(endpoint, message_id, own.header.data(), own.header.size(),
                               own.bytes.data(), own.bytes.size(), &parameters);
      },
      false, flags);
}

outcome& raw_peer::get(ucp_ep_h endpoint, void* into, std::size_t size, const void* from,
                       ucp_rkey_h key) {
  return track([&](ucp_request_param_t& parameters) {
    return api.get_nbx(endpoint, into, size, reinterpret_cast<std::uintptr_t>(from), key,
                       &parameters);
  });
}

outcome& raw_peer::put(ucp_ep_h endpoint, const void* from, std::size_t size, void* into,
                       ucp_rkey_h key) {
  return track([&](ucp_request_param_t& parameters) {
    return api.put_nbx(endpoint, from, size, reinterpret_cast<std::uintptr_t>(into), key,
                       &parameters);
  });
}

outcome& raw_peer::flush(ucp_ep_h endpoint) {
  return track(
      [&](ucp_request_param_t& parameters) { return api.ep_flush_nbx(endpoint, &parameters); });
}

outcome& raw_peer::start_close(ucp_ep_h endpoint, std::uint32_t flags) {
  return track(
      [&](ucp_request_param_t& parameters) { return api.ep_close_nbx(endpoint, &parameters); },
      false, flags);
}

outcome& raw_peer::receive(void* descriptor, void* into, std::size_t size) {
  return track(
      [&](ucp_request_param_t& parameters) {
        return api.am_recv_data_nbx(worker, descriptor, into, size, &parameters);
      },
      true);
}

ucp_mem_h raw_peer::map(void* bytes, std::size_t size) {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  parameters.address = bytes;
  parameters.length = size;
  ucp_mem_h memory = nullptr;
  EXPECT_EQ(api.mem_map(context, &parameters, &memory), UCS_OK);
  return memory;
}

ucp_rkey_h raw_peer::unpack(ucp_ep_h endpoint, raw_peer& owner, ucp_mem_h memory) {
  void* packed = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(owner.api.rkey_pack(owner.context, memory, &packed, &size), UCS_OK);
  ucp_rkey_h key = nullptr;
  EXPECT_EQ(api.ep_rkey_unpack(endpoint, packed, &key), UCS_OK);
  owner.api.rkey_buffer_release(packed);
  return key;
}

bool raw_peer::wait(const std::function<bool()>& done, std::chrono::nanoseconds limit) {
  const auto deadline = api.now() + limit;
  while (!done()) {
    if (progress() == 0) api.relax();
    if (!done() && api.now() >= deadline) return false;
  }
  return true;
}

}  // namespace ucx::test
