#include "connection/pending_connection.hpp"

#include <chrono>
#include <utility>

#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/listener_core.hpp"
#include "ucx/error.hpp"
#include "wire/introduction.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// What a peer can find out only by itself would be taken for its own finding.
errc told_to_peers(errc why) noexcept {
  switch (why) {
    case errc::timed_out:
    case errc::connection_reset:
    case errc::unreachable:
    case errc::host_not_found:
    case errc::canceled:
    case errc::closed:
    case errc::closed_by_peer:
      return errc::connection_refused;
    default:
      return why;
  }
}

}  // namespace

pending_connection::pending_connection(std::shared_ptr<listener_core> listener,
                                       ucp_conn_request_h request) noexcept
    : listener_(std::move(listener)),
      request_(request),
      peer_(peer_of(listener_->worker().api(), request)) {}

socket_address pending_connection::peer_of(ucp_api& api, ucp_conn_request_h request) noexcept {
  ucp_conn_request_attr_t attributes = {};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (api.conn_request_query(request, &attributes) != UCS_OK) return {};
  std::error_code ignored;
  return socket_address::from_native(
      reinterpret_cast<const ::sockaddr*>(&attributes.client_address),
      sizeof attributes.client_address, ignored);
}

void pending_connection::reject() noexcept {
  if (request_ == nullptr) return;
  listener_->reject(std::exchange(request_, nullptr));
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
  const auto limit = options.connect_timeout;
  auto made = make(worker, std::move(keep_alive), std::move(options), ec);
  if (!made) return nullptr;
  made->observers().set_observer(listener_);
  made->session().await_hello(limit);
  return made;
}

std::shared_ptr<endpoint_core> pending_connection::accept_elsewhere(worker_core& worker,
                                                                    std::error_code& ec) {
  auto made = make(worker, nullptr, endpoint_options(), ec);
  if (made) made->session().await_hello(std::chrono::nanoseconds::zero());
  return made;
}

std::shared_ptr<endpoint_core> pending_connection::make(worker_core& worker,
                                                        std::shared_ptr<worker_core> keep_alive,
                                                        endpoint_options options,
                                                        std::error_code& ec) {
  if (!options.terms) options.terms = listener_->terms();
  if ((ec = complaint_about(*options.terms, worker.context().features()))) return nullptr;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request_;
  options.failure = peer_failure::detected;
  auto made = endpoint_core::make(worker, std::move(keep_alive), params,
                                  endpoint_core::role::acceptor, std::move(options), ec);
  request_ = nullptr;  // UCX's; what throws has left it alone
  if (made) made->set_peer(peer_);
  return made;
}

const socket_address& pending_connection::local() const noexcept { return listener_->address(); }

worker_core& pending_connection::worker() const noexcept { return listener_->worker(); }

void pending_connection::refuse(errc why, std::string_view words) {
  worker_core& worker = listener_->worker();
  const std::lock_guard guard(worker.lock());
  if (!worker.context().has(feature::am) || !listener_->begin_refusal()) return reject();
  std::error_code gone;
  const auto peer = accept(worker, nullptr, endpoint_options(), gone);
  if (!peer) return listener_->end_refusal();
  peer->session().refuse_hello(
      {make_error_code(told_to_peers(why)), shown(words, introduction::most_words)});
  worker.connections().served().serve(peer);
}

connection_request core_access::make_connection_request(
    std::unique_ptr<pending_connection> pending) noexcept {
  return connection_request(std::move(pending));
}

}  // namespace ucx::detail
