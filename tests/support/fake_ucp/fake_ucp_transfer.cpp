// One-sided operations and active messages of the simulated UCX.
#include <algorithm>
#include <utility>

#include "support/fake_ucp/fake_ucp_entry.hpp"
#include "support/fake_ucp/watched_memory.hpp"

namespace ucx::test {
namespace {

void count_bytes(sim::fabric& network, call which, std::size_t size) {
  network.bytes[static_cast<std::size_t>(which)] += size;
}

// What `get` and `put` have in common, up to the first frame.
struct one_sided {
  sim::endpoint_object* endpoint = nullptr;
  std::uint64_t memory_id = 0;
  ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;  // of the peer's memory
  bool hardware = false;
  ucs_status_t status = UCS_OK;
};

one_sided check(api_entry& in, sim::fabric& network, ucp_ep_h endpoint, ucp_rkey_h key) {
  one_sided result;
  result.endpoint = in.find(network.endpoints, endpoint);
  const auto* const unpacked = in.find(network.rkeys, key);
  if (result.endpoint == nullptr || unpacked == nullptr) {
    result.status = UCS_ERR_INVALID_PARAM;
  } else if (in.refused()) {
    result.status = in.verdict().status;
  } else if ((result.endpoint->worker->context->features & UCP_FEATURE_RMA) == 0) {
    result.status = UCS_ERR_INVALID_PARAM;
  } else if (unpacked->endpoint != result.endpoint) {
    in.violate("with a key that was unpacked on another endpoint");
    result.status = UCS_ERR_INVALID_PARAM;
  } else {
    result.status = result.endpoint->failure;
    result.memory_id = unpacked->memory_id;
    result.type = unpacked->type;
  }
  return result;
}

// UCX finds out what it is not told. What it is told wrong it believes, and its processor touches a
// device's memory.
ucs_memory_type_t local_type(api_entry& in, const sim::fabric& network,
                             const sim::context_object& context, const void* bytes,
                             const ucp_request_param_t& params) {
  const bool device = network.is_on_device(bytes);
  const auto found = device && context.knows_devices ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  const bool named = (params.op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0;
  const auto type = named ? params.memory_type : found;
  if (device != (type == UCS_MEMORY_TYPE_CUDA)) in.violate("with memory of another type");
  return type;
}

// Decides who moves the bytes: hardware, UCX itself, or nobody.
void choose_protocol(api_entry& in, sim::fabric& network, call which, const void* local,
                     std::size_t size, const ucp_request_param_t& params, one_sided& checked) {
  if (checked.status != UCS_OK) return;
  const auto& context = *checked.endpoint->worker->context;
  const auto type = local_type(in, network, context, local, params);
  const auto* const there = network.memory(checked.memory_id);
  const bool peers_device = checked.type != UCS_MEMORY_TYPE_HOST;
  const bool reaches_peer = !peers_device || (there != nullptr && there->in_reach);
  const bool reaches_own =
      type == UCS_MEMORY_TYPE_HOST || network.devices->is_in_reach(local, size);
  const bool lacks_get = which == call::get && peers_device && network.devices->emulates_gets();
  checked.hardware = !network.link.emulated_rma && reaches_peer && reaches_own && !lacks_get;
  if (!checked.hardware && !context.emulates) checked.status = UCS_ERR_CANCELED;
}

// Sends what starts the operation: now, or later where a delay is planned.
void start(sim::fabric& network, const one_sided& checked, std::uint64_t operation,
           sim::transmission what, const fault& planned) {
  const sim::endpoint_object& endpoint = *checked.endpoint;
  const auto link = endpoint.link;
  const int index = endpoint.index;
  const bool hardware = checked.hardware;
  if (planned.delay.count() == 0) return network.post(link, index, std::move(what), hardware);
  network.after(planned.delay, [&network, link, index, operation, hardware, what] {
    const auto& own = link->sides[static_cast<std::size_t>(index)];
    if (own.operations.count(operation) != 0) network.post(link, index, what, hardware);
  });
}

// The operation starts late instead of completing late.
fault undelayed(fault planned) {
  planned.delay = std::chrono::nanoseconds::zero();
  return planned;
}

std::size_t element_size(api_entry& in, const ucp_request_param_t& params) {
  if ((params.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0) return 1;
  const bool contiguous = (params.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
  if (!contiguous) in.violate("with a datatype that the fake does not have");
  return contiguous ? params.datatype >> UCP_DATATYPE_SHIFT : 1;
}

// A message that is about to leave.
struct outgoing_message {
  const std::byte* header = nullptr;
  std::size_t header_size = 0;
  const std::byte* bytes = nullptr;
  std::size_t size = 0;
  bool rndv = false;
  bool damaged = false;
  sim::frame frame = {};
};

void send_copy(sim::fabric& network, sim::endpoint_object& from, outgoing_message message) {
  message.frame.operation = network.next_id++;
  message.frame.header.assign(message.header, message.header + message.header_size);
  message.frame.bytes.assign(message.bytes, message.bytes + message.size);
  if (message.damaged && message.size > 0) message.frame.bytes.back() ^= std::byte{1};
  network.post(from.link, from.index, std::move(message.frame));
}

// The caller's header and buffer stay in use until the request completes.
ucs_status_ptr_t send_borrowed(sim::fabric& network, sim::endpoint_object& from,
                               outgoing_message message, const ucp_request_param_t& params,
                               const fault& planned) {
  const auto started = network.begin(from.link, from.index, call::am_send);
  started->header = message.header;
  started->header_size = message.header_size;
  started->header_sum = sim::checksum(message.header, message.header_size);
  started->source = message.bytes;
  started->size = message.size;
  if (!from.worker->process->sources_may_change && !network.link.weightless) {
    started->sums = network.sums(message.bytes, message.size);
  }
  started->request = make_request(network, *from.worker, call::am_send, params, planned);
  auto* const request = started->request.get();
  sim::transmission data;
  data.prototype = std::move(message.frame);
  data.prototype.operation = started->id;
  data.prototype.header.assign(message.header, message.header + message.header_size);
  data.source_operation = started;
  data.damaged = message.damaged;
  if (!message.rndv && message.size > 0) {
    data.source = message.bytes;
    data.size = message.size;
  } else {
    data.size = message.header_size;
  }
  network.post(from.link, from.index, std::move(data));
  return request;
}

}  // namespace

ucs_status_ptr_t fake_ucp::get_nbx(ucp_ep_h endpoint, void* buffer, std::size_t count,
                                   std::uint64_t address, ucp_rkey_h key,
                                   const ucp_request_param_t* params) {
  api_entry in(*this, call::get, worker_of(endpoint));
  auto checked = check(in, network_, endpoint, key);
  choose_protocol(in, network_, call::get, buffer, count, *params, checked);
  if (checked.status != UCS_OK) return status_pointer(checked.status);
  auto& object = *checked.endpoint;
  if (in.verdict().late)
    return fail_late(network_, *object.worker, call::get, *params, in.verdict());
  if (count == 0) return nullptr;
  count_bytes(network_, call::get, count);
  network_.see(call::get, true, count);
  const auto started = network_.begin(object.link, object.index, call::get);
  started->target = static_cast<std::byte*>(buffer);
  started->size = count;
  started->request =
      make_request(network_, *object.worker, call::get, *params, undelayed(in.verdict()));
  auto* const request = started->request.get();
  sim::transmission ask;
  ask.prototype.kind = sim::frame_kind::get_request;
  ask.prototype.operation = started->id;
  ask.prototype.total = count;
  ask.prototype.address = address;
  ask.prototype.memory_id = checked.memory_id;
  start(network_, checked, started->id, std::move(ask), in.verdict());
  return request;
}

ucs_status_ptr_t fake_ucp::put_nbx(ucp_ep_h endpoint, const void* buffer, std::size_t count,
                                   std::uint64_t address, ucp_rkey_h key,
                                   const ucp_request_param_t* params) {
  api_entry in(*this, call::put, worker_of(endpoint));
  auto checked = check(in, network_, endpoint, key);
  choose_protocol(in, network_, call::put, buffer, count, *params, checked);
  if (checked.status != UCS_OK) return status_pointer(checked.status);
  auto& object = *checked.endpoint;
  if (in.verdict().late)
    return fail_late(network_, *object.worker, call::put, *params, in.verdict());
  if (count == 0) return nullptr;
  count_bytes(network_, call::put, count);
  network_.see(call::put, true, count);
  const auto* const source = static_cast<const std::byte*>(buffer);
  const auto started = network_.begin(object.link, object.index, call::put);
  started->size = count;
  sim::transmission data;
  data.prototype.kind = sim::frame_kind::put_data;
  data.prototype.operation = started->id;
  data.prototype.total = count;
  data.prototype.address = address;
  data.prototype.memory_id = checked.memory_id;
  data.size = count;
  const bool fits = network_.has_room(side_of(object), count) &&
                    in.verdict().inline_completion.value_or(count <= network_.link.inline_limit);
  if (fits && in.verdict().delay.count() == 0 && !denies_inline(*params)) {
    network_.load(data.prototype.bytes, source, count, checked.hardware);
    start(network_, checked, started->id, std::move(data), in.verdict());
    return nullptr;
  }
  started->source = source;
  started->sums = network_.sums(source, count);
  started->request =
      make_request(network_, *object.worker, call::put, *params, undelayed(in.verdict()));
  auto* const request = started->request.get();
  data.source_operation = started;
  data.source = source;
  start(network_, checked, started->id, std::move(data), in.verdict());
  return request;
}

ucs_status_t fake_ucp::worker_set_am_recv_handler(ucp_worker_h worker,
                                                  const ucp_am_handler_param_t* params) {
  api_entry in(*this, call::worker_set_am_recv_handler, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((object->context->features & UCP_FEATURE_AM) == 0) return UCS_ERR_INVALID_PARAM;
  if ((params->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ID) == 0 || params->id >= UINT16_MAX) {
    return UCS_ERR_INVALID_PARAM;
  }
  sim::am_handler handler;
  if ((params->field_mask & UCP_AM_HANDLER_PARAM_FIELD_CB) != 0) handler.call = params->cb;
  if ((params->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG) != 0) handler.argument = params->arg;
  if ((params->field_mask & UCP_AM_HANDLER_PARAM_FIELD_FLAGS) != 0) handler.flags = params->flags;
  object->handlers.erase(params->id);
  if (handler.call != nullptr) object->handlers.emplace(params->id, handler);
  return UCS_OK;
}

ucs_status_ptr_t fake_ucp::am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                                       std::size_t header_length, const void* buffer,
                                       std::size_t count, const ucp_request_param_t* params) {
  api_entry in(*this, call::am_send, worker_of(endpoint));
  auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return status_pointer(UCS_ERR_INVALID_PARAM);
  if (in.refused()) return status_pointer(in.verdict().status);
  if (object->failure != UCS_OK) return status_pointer(object->failure);
  const bool allowed = (object->worker->context->features & UCP_FEATURE_AM) != 0;
  if (!allowed || id >= UINT16_MAX || header_length > network_.link.max_am_header) {
    return status_pointer(UCS_ERR_INVALID_PARAM);
  }
  // What has to be over when the call returns can not fail later.
  const bool forced = (params->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) != 0;
  if (in.verdict().late) {
    if (forced) return status_pointer(in.verdict().status);
    return fail_late(network_, *object->worker, call::am_send, *params, in.verdict());
  }
  const auto flags = flags_of(*params);
  const bool eager_only = (flags & UCP_AM_SEND_FLAG_EAGER) != 0;
  const bool rndv_only = (flags & UCP_AM_SEND_FLAG_RNDV) != 0;
  if (eager_only && rndv_only) return status_pointer(UCS_ERR_INVALID_PARAM);
  const std::size_t size = count * element_size(in, *params);
  const bool rndv = rndv_only || (!eager_only && size > network_.link.rndv_threshold);

  outgoing_message message{static_cast<const std::byte*>(header), header_length,
                           static_cast<const std::byte*>(buffer), size, rndv};
  message.damaged = in.verdict().damaged;
  message.frame.kind = rndv ? sim::frame_kind::offer : sim::frame_kind::message;
  message.frame.am_id = id;
  message.frame.reply = (flags & UCP_AM_SEND_FLAG_REPLY) != 0;
  message.frame.total = size;
  const bool at_once = (params->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0;
  const bool small = at_once && header_length + size <= network_.link.inline_limit;
  const bool fits = !rndv && network_.has_room(side_of(*object), header_length + size) &&
                    in.verdict().inline_completion.value_or(small);
  const bool is_inline = fits && in.verdict().delay.count() == 0 && !denies_inline(*params);
  if (forced && !is_inline) return status_pointer(UCS_ERR_NO_RESOURCE);
  count_bytes(network_, call::am_send, size);
  watched.sent(buffer, size);
  network_.see(call::am_send, true, size, {message.header, message.header_size});
  if (is_inline) {
    send_copy(network_, *object, std::move(message));
    return nullptr;
  }
  return send_borrowed(network_, *object, std::move(message), *params, in.verdict());
}

ucs_status_ptr_t fake_ucp::am_recv_data_nbx(ucp_worker_h worker, void* descriptor, void* buffer,
                                            std::size_t count, const ucp_request_param_t* params) {
  api_entry in(*this, call::am_recv_data, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return status_pointer(UCS_ERR_INVALID_PARAM);
  if (in.refused()) return status_pointer(in.verdict().status);
  const std::size_t size = count * element_size(in, *params);
  count_bytes(network_, call::am_recv_data, size);
  if (const auto kept = object->kept.find(descriptor); kept != object->kept.end()) {
    if (size < kept->second.size()) return status_pointer(UCS_ERR_MESSAGE_TRUNCATED);
    std::copy(kept->second.begin(), kept->second.end(), static_cast<std::byte*>(buffer));
    if ((params->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO) != 0) {
      *params->recv_info.length = kept->second.size();
    }
    return nullptr;
  }
  const auto found = object->offers.find(descriptor);
  if (found == object->offers.end()) {
    in.violate("of something that was not offered, or was taken before");
    return status_pointer(UCS_ERR_INVALID_PARAM);
  }
  const sim::offered_message offer = *found->second;
  if (size < offer.size) return status_pointer(UCS_ERR_MESSAGE_TRUNCATED);
  object->offers.erase(found);
  const auto& own = offer.link->sides[static_cast<std::size_t>(offer.index)];
  if (own.closed) return status_pointer(UCS_ERR_CONNECTION_RESET);
  auto request = make_request(network_, *object, call::am_recv_data, *params, in.verdict());
  if (request->has_callback) request->on_received = params->cb.recv_am;
  request->on_sent = nullptr;
  if (in.verdict().late) {
    network_.drop_offer(offer, UCS_OK);
    network_.complete(request, in.late_status());
    return request.get();
  }
  const auto started = network_.begin(offer.link, offer.index, call::am_recv_data);
  started->target = static_cast<std::byte*>(buffer);
  started->size = offer.size;
  started->request = request;
  sim::frame ask;
  ask.kind = sim::frame_kind::fetch;
  ask.operation = offer.peer_operation;
  ask.peer_operation = started->id;
  network_.post(offer.link, offer.index, std::move(ask));
  return request.get();
}

void fake_ucp::am_data_release(ucp_worker_h worker, void* data) {
  api_entry in(*this, call::am_data_release, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return;
  if (const auto kept = object->kept.find(data); kept != object->kept.end()) {
    std::fill(kept->second.begin(), kept->second.end(), std::byte{0xdd});
    object->kept.erase(kept);
  } else if (const auto offer = object->offers.find(data); offer != object->offers.end()) {
    network_.drop_offer(*offer->second, UCS_OK);
    object->offers.erase(offer);
  } else {
    in.violate("of data that nobody kept");
  }
}

void fake_ucp::request_cancel(ucp_worker_h worker, void* request) {
  // Only tag receives can be cancelled, and there are none.
  api_entry in(*this, call::request_cancel, worker_of(worker));
  if (network_.requests.count(request) == 0) in.violate("of a request that was freed");
}

void fake_ucp::request_free(void* request) {
  api_entry in(*this, call::request_free);
  const auto found = network_.requests.find(request);
  if (found == network_.requests.end()) return in.violate("of a request that does not exist");
  found->second->released = true;
  network_.requests.erase(found);
}

std::size_t fake_ucp::read_process(::pid_t process, std::span<const ::iovec> into,
                                   std::span<const detail::memory_range> from) noexcept {
  api_entry in(*this, call::read_process);
  if (in.refused()) return 0;
  return detail::real_ucp().read_process(process, into, from);
}

}  // namespace ucx::test
