#include "raw_ucx.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

/// Ids of our active messages.
enum message : unsigned { hello = 1, read_request, write_request, data, confirmation };

constexpr std::uint64_t most_unconfirmed = std::uint64_t{16} << 20U;

void require(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

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

raw_header header_of(const void* bytes, std::size_t length) {
  raw_header header;
  if (length != sizeof header) throw std::runtime_error("a raw message has another header");
  std::memcpy(&header, bytes, sizeof header);
  return header;
}

double since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// Looks at the clock often enough for a pass of some tens of milliseconds.
unsigned calls_per_look(std::size_t call) { return call >= (std::size_t{256} << 10U) ? 4 : 32; }

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

raw_client::raw_client(const raw_fabric& fabric, const raw_target& target, std::uint64_t region)
    : worker_(fabric), target_(target), region_(region) {
  owner_ = worker_.connect(target.address);
  require(ucp_ep_rkey_unpack(owner_, target.key.data(), &key_), "unpacking a key");
  if (!fabric.messages) return;
  worker_.handle_messages(data, &raw_client::on_data, this);
  worker_.handle_messages(confirmation, &raw_client::on_confirmation, this);
  const std::vector<std::byte> address = worker_.address();
  sender_.send(owner_, hello, {}, address);
  progress_until([&] { return confirmations_ > 0 && sender_.in_flight() == 0; });
}

raw_client::~raw_client() {
  ucp_rkey_destroy(key_);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  // Without peer failure handling UCX refuses to force; nothing is in flight, so it is quick.
  ucs_status_ptr_t closing = ucp_ep_close_nbx(owner_, &params);
  if (UCS_PTR_IS_ERR(closing)) closing = ucp_ep_close_nbx(owner_, &(params = {}));
  if (!UCS_PTR_IS_PTR(closing)) return;
  // A second at most: of shared memory that nothing went through, UCX may wait for ever between
  // network namespaces.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  progress_until([&] {
    return ucp_request_check_status(closing) != UCS_INPROGRESS ||
           std::chrono::steady_clock::now() > until;
  });
  ucp_request_free(closing);
}

template <class Condition>
void raw_client::progress_until(Condition condition) {
  while (!condition()) worker_.progress();
}

ucs_status_t raw_client::on_data(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length,
                                 const ucp_am_recv_param_t* params) {
  auto& client = *static_cast<raw_client*>(self);
  const raw_header answer = header_of(header, header_length);
  slot& filled = client.slots_[answer.slot];
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    ucp_request_param_t fetch = {};
    fetch.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    fetch.cb.recv_am = &raw_client::on_fetched;
    fetch.user_data = &filled;
    ucs_status_ptr_t started = ucp_am_recv_data_nbx(client.worker_.handle(), data,
                                                    filled.into + answer.place, length, &fetch);
    if (UCS_PTR_IS_PTR(started)) return UCS_INPROGRESS;
    require(UCS_PTR_RAW_STATUS(started), "fetching a raw message");
    filled.missing -= length;
    return UCS_OK;
  }
  std::memcpy(filled.into + answer.place, data, length);
  filled.missing -= length;
  return UCS_OK;
}

ucs_status_t raw_client::on_confirmation(void* self, const void* header, std::size_t header_length,
                                         void*, std::size_t, const ucp_am_recv_param_t*) {
  auto& client = *static_cast<raw_client*>(self);
  const raw_header answer = header_of(header, header_length);
  client.number_ = answer.client;
  client.confirmed_bytes_ += answer.length;
  ++client.confirmations_;
  return UCS_OK;
}

void raw_client::on_fetched(void* request, ucs_status_t status, std::size_t length, void* filled) {
  require(status, "fetching a raw message");
  static_cast<slot*>(filled)->missing -= length;
  ucp_request_free(request);
}

void raw_client::on_got(void* request, ucs_status_t status, void* filled) {
  require(status, "a raw get");
  static_cast<slot*>(filled)->missing = 0;
  ucp_request_free(request);
}

void raw_client::on_put(void* request, ucs_status_t status, void* self) {
  require(status, "a raw put");
  --static_cast<raw_client*>(self)->puts_in_flight_;
  ucp_request_free(request);
}

std::byte* raw_client::buffer(const raw_loop& loop, unsigned number) {
  return buffers_.data() + (number % loop.window) * loop.call;
}

void raw_client::ask(const raw_loop& loop, unsigned number, std::uint64_t offset) {
  slot& asked = slots_[number % slots];
  asked.into = buffer(loop, number);
  asked.missing = loop.call;
  if (loop.way != raw_way::rma) {
    raw_header header;
    header.offset = offset;
    header.length = loop.call;
    header.piece = loop.piece != 0 ? loop.piece : loop.call;
    header.region = region_;
    header.client = number_;
    header.rendezvous = loop.way == raw_way::rendezvous ? 1 : 0;
    header.slot = number % slots;
    sender_.send(owner_, read_request, header, {});
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &raw_client::on_got;
  params.user_data = &asked;
  ucs_status_ptr_t started =
      ucp_get_nbx(owner_, asked.into, loop.call, target_.base + offset, key_, &params);
  if (UCS_PTR_IS_PTR(started)) return;
  require(UCS_PTR_RAW_STATUS(started), "a raw get");
  asked.missing = 0;
}

void raw_client::begin_reading(const raw_loop& loop) {
  buffers_.resize(std::max(buffers_.size(), loop.window * loop.call));
  asked_ = taken_ = 0;
}

/// Keeps the window full, unless it is stopping, and takes what has come; returns how much.
unsigned raw_client::read_on(const raw_loop& loop, bool stopping) {
  const auto place = [&](std::uint64_t number) {
    return call_offset(number, loop.call, loop.stride, target_.size);
  };
  const unsigned before = taken_;
  for (; !stopping && asked_ - taken_ < loop.window; ++asked_) ask(loop, asked_, place(asked_));
  const unsigned came = worker_.progress();
  for (; taken_ != asked_ && slots_[taken_ % slots].missing == 0; ++taken_) {
    last_offset_ = place(taken_);
    check_pattern({slots_[taken_ % slots].into, loop.call}, last_offset_);
  }
  if (loop.sleeps && came == 0 && taken_ == before) worker_.sleep();
  return taken_ - before;
}

double raw_client::read(const raw_loop& loop, std::chrono::nanoseconds duration) {
  raw_client* const only = this;
  return read_at_once(std::span(&only, 1), loop, duration);
}

void raw_client::read_one(const raw_loop& loop, std::uint64_t offset, std::span<std::byte> into) {
  begin_reading(loop);
  ask(loop, 0, offset);
  progress_until([&] { return slots_[0].missing == 0; });
  std::memcpy(into.data(), slots_[0].into, into.size());
}

double raw_client::read_at_once(std::span<raw_client* const> readers, const raw_loop& loop,
                                std::chrono::nanoseconds duration) {
  for (raw_client* const each : readers) each->begin_reading(loop);
  const unsigned look = calls_per_look(loop.call);
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t taken = 0;
  std::uint64_t looked = 0;
  bool stopping = false;
  for (bool more = true; more;) {
    more = false;
    for (raw_client* const each : readers) {
      taken += each->read_on(loop, stopping);
      more = more || !stopping || each->asked_ != each->taken_;
    }
    if (taken / look == looked) continue;
    looked = taken / look;
    stopping = stopping || clock::now() >= until;
  }
  return static_cast<double>(taken) / since(start);
}

void raw_client::put(const raw_loop& loop, std::uint64_t offset, std::span<const std::byte> from) {
  if (loop.way == raw_way::message) {
    const std::size_t piece = loop.piece != 0 ? loop.piece : loop.call;
    raw_header header;
    header.region = region_;
    header.client = number_;
    for (std::size_t at = 0; at < from.size(); at += piece) {
      header.offset = offset + at;
      sender_.send(owner_, write_request, header,
                   from.subspan(at, std::min(piece, from.size() - at)));
    }
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &raw_client::on_put;
  params.user_data = this;
  ucs_status_ptr_t started =
      ucp_put_nbx(owner_, from.data(), from.size(), target_.base + offset, key_, &params);
  if (UCS_PTR_IS_PTR(started)) {
    ++puts_in_flight_;
  } else {
    require(UCS_PTR_RAW_STATUS(started), "a raw put");
  }
}

double raw_client::write(const raw_loop& loop, std::span<const std::byte> from,
                         std::chrono::nanoseconds duration) {
  const bool confirmed = loop.way == raw_way::message;
  const std::size_t messages = loop.piece != 0 ? (loop.call + loop.piece - 1) / loop.piece : 1;
  const unsigned look = calls_per_look(loop.call);
  confirmed_bytes_ = 0;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t written = 0;
  std::uint64_t calls = 0;
  do {
    progress_until([&] {
      return puts_in_flight_ < loop.window && sender_.in_flight() < loop.window * messages &&
             (!confirmed || written - confirmed_bytes_ < most_unconfirmed);
    });
    last_offset_ = call_offset(calls, loop.call, loop.stride, target_.size);
    put(loop, last_offset_, from.first(loop.call));
    written += loop.call;
    if (!loop.flushes) continue;
    progress_until([&] { return !confirmed || confirmed_bytes_ == written; });
    if (!confirmed) flush();
  } while (++calls % look != 0 || clock::now() < until);
  progress_until([&] { return puts_in_flight_ == 0 && sender_.in_flight() == 0; });
  if (confirmed) {
    progress_until([&] { return confirmed_bytes_ == written; });
  } else {
    flush();
  }
  return static_cast<double>(calls) / since(start);
}

void raw_client::flush() {
  const ucp_request_param_t params = {};
  ucs_status_ptr_t flushing = ucp_ep_flush_nbx(owner_, &params);
  if (!UCS_PTR_IS_PTR(flushing)) return require(UCS_PTR_RAW_STATUS(flushing), "a raw flush");
  progress_until([&] { return ucp_request_check_status(flushing) != UCS_INPROGRESS; });
  require(ucp_request_check_status(flushing), "a raw flush");
  ucp_request_free(flushing);
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
