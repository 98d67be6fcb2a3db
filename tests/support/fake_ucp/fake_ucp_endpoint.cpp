// Listeners and endpoints of the simulated UCX.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/fake_ucp/fake_ucp_address.hpp"
#include "support/fake_ucp/fake_ucp_entry.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {
namespace {

sockaddr_storage copy_address(const ucs_sock_addr_t& from) {
  sockaddr_storage result{};
  std::memcpy(&result, from.addr, std::min<std::size_t>(from.addrlen, sizeof(result)));
  return result;
}

// Attaches an endpoint to one side of a connection, and gives it what its creator asked for.
sim::endpoint_object* attach(sim::fabric& network, const sim::connection_ptr& link, int index,
                             const ucp_ep_params_t& params) {
  auto& own = link->sides[static_cast<std::size_t>(index)];
  if (own.endpoint == nullptr) {
    auto made = std::make_unique<sim::endpoint_object>();
    made->worker = own.worker;
    made->link = link;
    made->index = index;
    own.endpoint = network.endpoints.add(std::move(made));
  }
  auto& endpoint = *own.endpoint;
  endpoint.created = true;
  if ((params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) != 0) {
    endpoint.detects_failure = params.err_mode == UCP_ERR_HANDLING_MODE_PEER;
  }
  if ((params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) != 0) {
    endpoint.on_error = params.err_handler;
    // As in UCX, the endpoint's own data wins over that of its handler.
    const bool has_data = (params.field_mask & UCP_EP_PARAM_FIELD_USER_DATA) != 0;
    if (has_data) endpoint.on_error.arg = params.user_data;
  }
  link->detects_failure = link->detects_failure || endpoint.detects_failure;
  return &endpoint;
}

sim::endpoint_object* connect_by_address(sim::fabric& network, sim::worker_object& worker,
                                         const ucp_ep_params_t& params, std::uint64_t peer) {
  auto number = worker.connections_to.find(peer);
  const auto next = number == worker.connections_to.end() ? 0 : number->second;
  if (peer != worker.id) {
    // The peer may have connected first: then its connection becomes this endpoint's.
    if (const auto link = network.find_implicit(worker, peer, next); link != nullptr) {
      ++worker.connections_to[peer];
      link->sides[1].open = true;
      return attach(network, link, 1, params);
    }
  }
  sim::worker_object* target = nullptr;
  network.workers.each([&](sim::worker_object& each) {
    if (each.id == peer && !each.process->killed) target = &each;
  });
  const auto link = network.connect(worker, target);
  auto* const made = attach(network, link, 0, params);
  link->sides[0].open = true;
  if (target == nullptr) {
    network.announce_death(link, 0, UCS_ERR_UNREACHABLE, 2 * network.link.latency);
  }
  return made;
}

sim::endpoint_object* connect_by_socket(sim::fabric& network, sim::worker_object& worker,
                                        const ucp_ep_params_t& params, const fault& planned) {
  const auto link = network.connect(worker, nullptr);
  auto& own = link->sides[0];
  own.address = copy_address(params.sockaddr);
  if (!network.link.client_host.empty()) {
    const socket_address from(network.link.client_host, 0);
    std::memcpy(&own.address, from.native(), from.native_size());
  }
  sim::set_port(own.address, network.next_port++);
  network.dial(link, copy_address(params.sockaddr), planned.delay);
  return attach(network, link, 0, params);
}

sim::endpoint_object* accept(sim::fabric& network, const sim::conn_request_object& request,
                             const ucp_ep_params_t& params) {
  auto* const made = attach(network, request.link, 1, params);
  auto& own = request.link->sides[1];
  if (own.closed) {
    made->failure = UCS_ERR_CONNECTION_RESET;
    network.put(*own.worker, sim::endpoint_error{made, made->failure});
    return made;
  }
  own.open = true;
  sim::frame answer;
  answer.kind = sim::frame_kind::accepted;
  network.post(request.link, 1, std::move(answer));
  return made;
}

void refuse(sim::fabric& network, ucp_conn_request_h request) {
  const auto* const object = network.conn_requests.find(request);
  if (object == nullptr) return;
  object->link->sides[1].closed = true;
  network.announce_death(object->link, 0, UCS_ERR_REJECTED, network.link.latency);
  network.conn_requests.remove(request);
}

// Operations that only the end of their endpoint ends keep their keys until then.
bool has_work(const sim::fabric& network, const sim::worker_object& worker) {
  return std::any_of(network.requests.begin(), network.requests.end(), [&](const auto& each) {
    return each.second->worker == &worker && !each.second->completed;
  });
}

}  // namespace

ucs_status_t fake_ucp::listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                                       ucp_listener_h* listener) {
  api_entry in(*this, call::listener_create, worker_of(worker));
  auto* const parent = in.find(network_.workers, worker);
  if (parent == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((params->field_mask & UCP_LISTENER_PARAM_FIELD_SOCK_ADDR) == 0 ||
      (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) == 0) {
    return UCS_ERR_INVALID_PARAM;
  }
  auto made = std::make_unique<sim::listener_object>();
  made->worker = parent;
  made->on_connect = params->conn_handler;
  made->address = copy_address(params->sockaddr);
  if (!sim::is_own_address(made->address)) return UCS_ERR_IO_ERROR;
  if (sim::port_of(made->address) == 0) sim::set_port(made->address, network_.next_port++);
  if (network_.find_listener(made->address) != nullptr) return UCS_ERR_BUSY;
  made->port = sim::port_of(made->address);
  *listener = reinterpret_cast<ucp_listener_h>(network_.listeners.add(std::move(made)));
  return UCS_OK;
}

ucs_status_t fake_ucp::listener_query(ucp_listener_h listener, ucp_listener_attr_t* attributes) {
  api_entry in(*this, call::listener_query);
  const auto* const object = in.find(network_.listeners, listener);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_LISTENER_ATTR_FIELD_SOCKADDR) != 0) {
    attributes->sockaddr = object->address;
  }
  return UCS_OK;
}

ucs_status_t fake_ucp::listener_reject(ucp_listener_h listener, ucp_conn_request_h request) {
  api_entry in(*this, call::listener_reject);
  auto* const object = in.find(network_.conn_requests, request);
  if (in.find(network_.listeners, listener) == nullptr || object == nullptr) {
    return UCS_ERR_INVALID_PARAM;
  }
  if (in.refused()) return in.verdict().status;
  refuse(network_, request);
  return UCS_OK;
}

void fake_ucp::listener_destroy(ucp_listener_h listener) {
  api_entry in(*this, call::listener_destroy);
  if (in.find(network_.listeners, listener) != nullptr) network_.listeners.remove(listener);
}

ucs_status_t fake_ucp::conn_request_query(ucp_conn_request_h request,
                                          ucp_conn_request_attr_t* attributes) {
  api_entry in(*this, call::conn_request_query);
  const auto* const object = in.find(network_.conn_requests, request);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR) != 0) {
    attributes->client_address = object->link->sides[0].address;
  }
  return UCS_OK;
}

ucs_status_t fake_ucp::ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                 ucp_ep_h* endpoint) {
  api_entry in(*this, call::ep_create, worker_of(worker));
  auto* const parent = in.find(network_.workers, worker);
  if (parent == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) {
    // UCX rejects a request that it can not accept: nobody may do so again.
    if ((params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) != 0) {
      refuse(network_, params->conn_request);
    }
    return in.verdict().status;
  }
  sim::endpoint_object* made = nullptr;
  if ((params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) != 0) {
    auto* const request = in.find(network_.conn_requests, params->conn_request);
    if (request == nullptr) return UCS_ERR_INVALID_PARAM;
    made = accept(network_, *request, *params);
    network_.conn_requests.remove(request);
  } else if ((params->field_mask & UCP_EP_PARAM_FIELD_SOCK_ADDR) != 0) {
    const bool as_client = (params->field_mask & UCP_EP_PARAM_FIELD_FLAGS) != 0 &&
                           (params->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER) != 0;
    if (!as_client) return UCS_ERR_INVALID_PARAM;
    made = connect_by_socket(network_, *parent, *params, in.verdict());
  } else if ((params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) != 0) {
    const auto peer = read_address(params->address);
    if (!peer) {
      in.violate("with bytes that are not an intact worker address: UCX crashes on such");
      return UCS_ERR_INVALID_ADDR;
    }
    made = connect_by_address(network_, *parent, *params, *peer);
  } else {
    return UCS_ERR_INVALID_PARAM;
  }
  if (in.verdict().late) {
    network_.announce_death(made->link, made->index, in.late_status(), network_.link.latency);
  }
  *endpoint = reinterpret_cast<ucp_ep_h>(made);
  return UCS_OK;
}

ucs_status_ptr_t fake_ucp::ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) {
  api_entry in(*this, call::ep_close, worker_of(endpoint));
  auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return status_pointer(UCS_ERR_INVALID_PARAM);
  if (in.refused()) return status_pointer(in.verdict().status);
  const bool force = (flags_of(*params) & UCP_EP_CLOSE_FLAG_FORCE) != 0;
  if (force && !object->detects_failure && !object->link->by_socket) {
    return status_pointer(UCS_ERR_INVALID_PARAM);
  }
  if (object->rkeys != 0 && !(force && has_work(network_, *object->worker))) {
    in.violate("while a key that was unpacked on the endpoint lives");
  }
  auto& own = side_of(*object);
  auto& worker = *object->worker;
  const auto link = object->link;
  const int index = object->index;
  const bool failed = object->failure != UCS_OK;
  network_.endpoints.remove(endpoint);
  own.endpoint = nullptr;
  if (failed) return nullptr;

  if (!force) {
    own.leaving = true;
    const auto closing = network_.begin(link, index, call::ep_close);
    closing->request = make_request(network_, worker, call::ep_close, *params, in.verdict());
    auto* const request = closing->request.get();
    network_.settle_flushes(link, index);
    return request;
  }
  const auto before = worker.items.size();
  network_.shut(link, index, UCS_ERR_CANCELED);
  if (network_.link.close_calls_back) network_.call_back_from(worker, before, in.lock());
  const bool at_once = in.verdict().inline_completion.value_or(false) && !denies_inline(*params);
  if (at_once && in.verdict().delay.count() == 0) return nullptr;
  auto request = make_request(network_, worker, call::ep_close, *params, in.verdict());
  network_.complete(request, in.late_status());
  return request.get();
}

ucs_status_ptr_t fake_ucp::ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* params) {
  api_entry in(*this, call::ep_flush, worker_of(endpoint));
  auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return status_pointer(UCS_ERR_INVALID_PARAM);
  if (in.refused()) return status_pointer(in.verdict().status);
  if (object->failure != UCS_OK) return status_pointer(object->failure);
  if (in.verdict().late)
    return fail_late(network_, *object->worker, call::ep_flush, *params, in.verdict());
  const bool connected = side_of(*object).open;
  const bool idle = connected && side_of(*object).operations.empty();
  const bool wanted = in.verdict().inline_completion.value_or(true);
  if (idle && wanted && in.verdict().delay.count() == 0 && !denies_inline(*params)) return nullptr;
  const auto flush = network_.begin(object->link, object->index, call::ep_flush);
  flush->request = make_request(network_, *object->worker, call::ep_flush, *params, in.verdict());
  auto* const request = flush->request.get();
  network_.settle_flushes(object->link, object->index);
  return request;
}

ucs_status_t fake_ucp::ep_query(ucp_ep_h endpoint, ucp_ep_attr_t* attributes) {
  api_entry in(*this, call::ep_query, worker_of(endpoint));
  auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_EP_ATTR_FIELD_NAME) != 0) {
    std::snprintf(attributes->name, sizeof(attributes->name), "%s", process_.name.c_str());
  }
  const auto& sides = object->link->sides;
  const auto mine = static_cast<std::size_t>(object->index);
  const auto sockets = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
  if ((attributes->field_mask & sockets) != 0 && !object->link->by_socket) {
    return UCS_ERR_NOT_CONNECTED;
  }
  if ((attributes->field_mask & UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR) != 0) {
    attributes->local_sockaddr = sides[mine].address;
  }
  if ((attributes->field_mask & UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR) != 0) {
    attributes->remote_sockaddr = sides[1 - mine].address;
  }
#if UCP_API_VERSION >= UCP_VERSION(1, 16)
  if ((attributes->field_mask & UCP_EP_ATTR_FIELD_TRANSPORTS) != 0) {
    const auto& lanes = object->worker->context->lanes;
    auto& transports = attributes->transports;
    transports.num_entries = std::min(transports.num_entries, static_cast<unsigned>(lanes.size()));
    for (unsigned i = 0; i < transports.num_entries; ++i) {
      auto* const slot = reinterpret_cast<char*>(transports.entries) + i * transports.entry_size;
      auto& entry = *reinterpret_cast<ucp_transport_entry_t*>(slot);
      entry.transport_name = lanes[i].transport.c_str();
      entry.device_name = lanes[i].device.c_str();
    }
  }
#endif
  return UCS_OK;
}

void fake_ucp::ep_print_info(ucp_ep_h endpoint, std::FILE* to) {
  api_entry in(*this, call::ep_print_info, worker_of(endpoint));
  const auto* const object = in.find(network_.endpoints, endpoint);
  if (object == nullptr) return;
  std::fprintf(to, "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n");
  const auto& lanes = object->worker->context->lanes;
  int number = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const char* const transport = lanes[i].transport.c_str();
    const auto& only = network_.link.lanes;
    const std::string name = lanes[i].transport + '/' + lanes[i].device;
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    if (lanes[i].transport == "self") continue;
    std::fprintf(to,
                 "#                 lane[%d]:  %zu:%s/%s.0 md[%zu]                -> md[%zu]/%s/"
                 "sysdev[255] %s\n",
                 number, i, transport, lanes[i].device.c_str(), i, i, transport,
                 number == 0 ? "am am_bw#0 keepalive wireup" : "am_bw#1");
    ++number;
  }
  std::fprintf(to, "#\n#                 am_send: 0..<egr/short>..8185..<egr/zcopy>..(inf)\n#\n");
}

}  // namespace ucx::test
