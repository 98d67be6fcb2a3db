#include "detail/pending_connection.hpp"

#include <utility>

#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/listener_core.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

pending_connection::pending_connection(std::shared_ptr<listener_core> listener,
                                       ucp_conn_request_h request) noexcept
    : listener_(std::move(listener)), request_(request) {
  ucp_conn_request_attr_t attributes = {};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (listener_->worker().api().conn_request_query(request_, &attributes) != UCS_OK) return;
  std::error_code ignored;
  peer_ =
      socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&attributes.client_address),
                                  sizeof attributes.client_address, ignored);
}

void pending_connection::reject() noexcept {
  if (request_ == nullptr) return;
  worker_core& worker = listener_->worker();
  const std::lock_guard guard(worker.lock());
  worker.api().listener_reject(listener_->handle(), std::exchange(request_, nullptr));
}

std::shared_ptr<endpoint_core> pending_connection::accept(worker_core& worker,
                                                          std::shared_ptr<worker_core> keep_alive,
                                                          endpoint_options options,
                                                          std::error_code& ec) {
  if (request_ == nullptr) {
    ec = errc::closed;
    return nullptr;
  }
  if (&worker != &listener_->worker()) {
    ec = errc::invalid_argument;
    return nullptr;
  }
  const std::lock_guard guard(worker.lock());
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = std::exchange(request_, nullptr);
  options.failure = peer_failure::detected;
  auto made = endpoint_core::make(worker, std::move(keep_alive), params,
                                  endpoint_core::role::acceptor, std::move(options), ec);
  if (!made) return nullptr;
  made->set_peer(peer_);
  made->await_hello();
  return made;
}

connection_request core_access::make_connection_request(
    std::unique_ptr<pending_connection> pending) noexcept {
  return connection_request(std::move(pending));
}

}  // namespace ucx::detail
