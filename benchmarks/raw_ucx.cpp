#include "raw_ucx.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "raw_messages.hpp"

namespace ucx::benchmarks {
namespace {

void ignore_error(void*, ucp_ep_h, ucs_status_t) {}

void set(ucp_config_t* config, const char* key, const std::string& value) {
  if (!value.empty()) require(ucp_config_modify(config, key, value.c_str()), key);
}

bool segment_keys_have_prefix() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  ucp_get_version(&major, &minor, &patch);
  return std::pair(major, minor) >= std::pair(1U, 14U);
}

}  // namespace

raw_worker::raw_worker(const raw_fabric& fabric) : watch_peers_(fabric.messages) {
  ucp_config_t* config = nullptr;
  require(ucp_config_read(nullptr, nullptr, &config), "reading UCX's configuration");
  set(config, "TLS", fabric.transports);
  set(config, "NET_DEVICES", fabric.devices);
  const bool prefix = segment_keys_have_prefix();
  set(config, prefix ? "TCP_TX_SEG_SIZE" : "TX_SEG_SIZE", fabric.segment_size);
  set(config, prefix ? "TCP_RX_SEG_SIZE" : "RX_SEG_SIZE", fabric.segment_size);
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA;
  if (fabric.messages) params.features |= UCP_FEATURE_AM;
  if (fabric.wakeup) params.features |= UCP_FEATURE_WAKEUP;
  if (fabric.every_message) {
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM;
  }
  const ucs_status_t made = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  require(made, "making a raw context");
  ucp_worker_params_t worker_params = {};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  require(ucp_worker_create(context_, &worker_params, &worker_), "making a raw worker");
}

void raw_worker::sleep() const noexcept {
  int descriptor = -1;
  if (ucp_worker_get_efd(worker_, &descriptor) != UCS_OK || ucp_worker_arm(worker_) != UCS_OK) {
    return;  // something has come meanwhile
  }
  ::pollfd watched{descriptor, POLLIN, 0};
  ::poll(&watched, 1, 1);
}

raw_worker::~raw_worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

std::vector<std::byte> raw_worker::address() const {
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  require(ucp_worker_get_address(worker_, &bytes, &length), "asking for a raw address");
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> copy(begin, begin + length);
  ucp_worker_release_address(worker_, bytes);
  return copy;
}

ucp_ep_h raw_worker::connect(std::span<const std::byte> address) const {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = watch_peers_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = &ignore_error;
  ucp_ep_h endpoint = nullptr;
  require(ucp_ep_create(worker_, &params, &endpoint), "connecting");
  return endpoint;
}

void raw_worker::handle_messages(unsigned id, ucp_am_recv_callback_t handler,
                                 void* argument) const {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.cb = handler;
  params.arg = argument;
  require(ucp_worker_set_am_recv_handler(worker_, &params), "handling raw messages");
}

void raw_sender::send(ucp_ep_h to, unsigned id, const raw_header& header,
                      std::span<const std::byte> bytes) {
  send(to, id, header, bytes, UCP_AM_SEND_FLAG_EAGER);
}

void raw_sender::send_by_rendezvous(ucp_ep_h to, unsigned id, const raw_header& header,
                                    std::span<const std::byte> bytes) {
  send(to, id, header, bytes, UCP_AM_SEND_FLAG_RNDV);
}

void raw_sender::send(ucp_ep_h to, unsigned id, const raw_header& header,
                      std::span<const std::byte> bytes, std::uint32_t flags) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<sent>());
    free_.push_back(all_.back().get());
  }
  sent* const taken = free_.back();
  free_.pop_back();
  taken->sender = this;
  taken->header = header;
  ++in_flight_;
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.cb.send = &raw_sender::on_sent;
  params.user_data = taken;
  params.flags = flags;
  ucs_status_ptr_t started = ucp_am_send_nbx(to, id, &taken->header, sizeof taken->header,
                                             bytes.data(), bytes.size(), &params);
  if (UCS_PTR_IS_PTR(started)) return;
  give_back(*taken);
  require(UCS_PTR_RAW_STATUS(started), "sending a raw message");
}

void raw_sender::on_sent(void* request, ucs_status_t, void* argument) {
  auto& ended = *static_cast<sent*>(argument);
  ucp_request_free(request);
  ended.sender->give_back(ended);
}

void raw_sender::give_back(sent& unused) {
  --in_flight_;
  free_.push_back(&unused);
}

raw_owner::raw_owner(const raw_fabric& fabric) : worker_(fabric) {
  if (!fabric.messages) return;
  worker_.handle_messages(hello, &raw_owner::on_hello, this);
  worker_.handle_messages(read_request, &raw_owner::on_read, this);
  worker_.handle_messages(write_request, &raw_owner::on_write, this);
}

raw_target raw_owner::expose(std::span<std::byte> bytes) {
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = bytes.data();
  params.length = bytes.size();
  ucp_mem_h memory = nullptr;
  require(ucp_mem_map(worker_.context(), &params, &memory), "exposing memory");
  return add(memory, bytes);
}

std::span<std::byte> raw_owner::allocate(std::size_t size, raw_target& target) {
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = size;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  ucp_mem_h memory = nullptr;
  require(ucp_mem_map(worker_.context(), &params, &memory), "allocating memory");
  ucp_mem_attr_t attributes = {};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  require(ucp_mem_query(memory, &attributes), "looking for allocated memory");
  const std::span bytes(static_cast<std::byte*>(attributes.address), size);
  target = add(memory, bytes);
  return bytes;
}

raw_target raw_owner::add(ucp_mem_h memory, std::span<std::byte> bytes) {
  void* packed = nullptr;
  std::size_t length = 0;
  require(ucp_rkey_pack(worker_.context(), memory, &packed, &length), "packing a key");
  const auto* begin = static_cast<const std::byte*>(packed);
  raw_target target;
  target.address = worker_.address();
  target.key.assign(begin, begin + length);
  target.base = reinterpret_cast<std::uintptr_t>(bytes.data());
  target.size = bytes.size();
  ucp_rkey_buffer_release(packed);
  regions_.push_back(bytes);
  return target;
}

ucs_status_t raw_owner::on_hello(void* self, const void*, std::size_t, void* data,
                                 std::size_t length, const ucp_am_recv_param_t*) {
  auto& owner = *static_cast<raw_owner*>(self);
  raw_header welcome;
  welcome.client = owner.clients_.size();
  owner.clients_.push_back(owner.worker_.connect({static_cast<const std::byte*>(data), length}));
  owner.sender_.send(owner.clients_.back(), confirmation, welcome, {});
  return UCS_OK;
}

ucs_status_t raw_owner::on_read(void* self, const void* header, std::size_t header_length, void*,
                                std::size_t, const ucp_am_recv_param_t*) {
  auto& owner = *static_cast<raw_owner*>(self);
  raw_header answer = header_of(header, header_length);
  const auto asked = owner.regions_[answer.region].subspan(answer.offset, answer.length);
  for (std::size_t at = 0; at < asked.size(); at += answer.piece) {
    answer.place = at;
    const auto piece = asked.subspan(at, std::min(answer.piece, asked.size() - at));
    if (answer.rendezvous != 0) {
      owner.sender_.send_by_rendezvous(owner.clients_[answer.client], message::data, answer, piece);
    } else {
      owner.sender_.send(owner.clients_[answer.client], message::data, answer, piece);
    }
  }
  return UCS_OK;
}

ucs_status_t raw_owner::on_write(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t*) {
  auto& owner = *static_cast<raw_owner*>(self);
  raw_header answer = header_of(header, header_length);
  const auto target = owner.regions_[answer.region].subspan(answer.offset, length);
  std::memcpy(target.data(), data, length);
  answer.length = length;
  owner.sender_.send(owner.clients_[answer.client], confirmation, answer, {});
  return UCS_OK;
}

void fill_pattern(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t word = pattern_word(at);
    std::memcpy(bytes.data() + at, &word, 8);
  }
}

void check_pattern(std::span<const std::byte> bytes, std::uint64_t offset) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::memcpy(&first, bytes.data(), 8);
  std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
  if (first == pattern_word(offset) && last == pattern_word(offset + bytes.size() - 8)) return;
  throw std::runtime_error("read other bytes than there are at offset " + std::to_string(offset));
}

}  // namespace ucx::benchmarks
