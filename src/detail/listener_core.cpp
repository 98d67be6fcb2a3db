#include "detail/listener_core.hpp"

#include <utility>

#include "detail/connection_table.hpp"
#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/pending_connection.hpp"
#include "detail/resource_error.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

listener_core::listener_core(std::shared_ptr<worker_core> worker,
                             accept_handler on_request) noexcept
    : worker_(std::move(worker)), on_request_(std::move(on_request)), serves_(!on_request_) {}

std::shared_ptr<listener_core> listener_core::make(std::shared_ptr<worker_core> worker,
                                                   const socket_address& address,
                                                   accept_handler on_request, std::string& what,
                                                   std::error_code& ec) {
  ec.clear();
  what = "listening on " + to_string(address);
  if (!worker) {
    ec = errc::closed;
    return nullptr;
  }
  if (address.empty()) {
    ec = errc::bad_address;
    return nullptr;
  }
  if (address.is_v6() && !worker->context().speaks_ipv6()) {
    what += no_ipv6;
    ec = errc::not_supported;
    return nullptr;
  }
  std::shared_ptr<listener_core> made(new listener_core(std::move(worker), std::move(on_request)));
  ucp_api& api = made->worker_->api();
  const std::lock_guard guard(made->worker_->lock());
  if ((ec = listen_error(address))) return nullptr;
  ucp_listener_params_t params = {};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = address.native();
  params.sockaddr.addrlen = address.native_size();
  params.conn_handler.cb = &listener_core::on_connection;
  params.conn_handler.arg = made.get();
  const ucs_status_t status = api.listener_create(made->worker_->handle(), &params, &made->handle_);
  if (status != UCS_OK) {
    made->handle_ = nullptr;
    what += " (UCX: " + words(status) + ")";
    ec = status == UCS_ERR_BUSY ? make_error_code(errc::address_in_use) : resource_error(status);
    return nullptr;
  }
  ucp_listener_attr_t attributes = {};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  ec = make_error(api.listener_query(made->handle_, &attributes));
  if (ec) return nullptr;
  made->address_ = socket_address::from_native(
      reinterpret_cast<const ::sockaddr*>(&attributes.sockaddr), sizeof attributes.sockaddr, ec);
  return ec ? nullptr : made;
}

listener_core::~listener_core() {
  if (handle_ == nullptr) return;
  const std::lock_guard guard(worker_->lock());
  worker_->api().listener_destroy(handle_);
}

void listener_core::close() noexcept {
  const std::lock_guard guard(worker_->lock());
  closed_ = true;
}

void listener_core::on_connection(ucp_conn_request_h request, void* self) {
  static_cast<listener_core*>(self)->connection(request);
}

void listener_core::connection(ucp_conn_request_h request) {
  // Inside UCX's callback: endpoints are made, and handlers run, when it has returned.
  auto pending = std::make_unique<pending_connection>(shared_from_this(), request);
  worker_->defer([this, pending = std::move(pending)]() mutable {
    if (closed_) return;  // and the request is rejected as it goes
    if (!serves_) return on_request_(core_access::make_connection_request(std::move(pending)));
    std::error_code ignored;  // a peer that is gone already
    auto peer = pending->accept(*worker_, nullptr, endpoint_options(), ignored);
    if (peer) worker_->connections().serve(std::move(peer));
  });
}

}  // namespace ucx::detail
