#include "connection/pending_connection.hpp"

#include <chrono>
#include <string>
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

/// Replaces codes that a peer finds out only by itself: it would take them for its own finding.
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
      peer_(peer_of(listener_->worker().api(), request)) {
  listener_->begin_pending();
}

pending_connection::~pending_connection() {
  reject();
  listener_->end_pending();
}

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

result<std::shared_ptr<endpoint_core>> pending_connection::accept(
    worker_core& worker, std::shared_ptr<worker_core> keep_alive, endpoint_options options) {
  if (request_ == nullptr) return failure{errc::closed};
  if (&worker != &listener_->worker()) return failure{errc::invalid_argument};
  const std::lock_guard guard(worker.lock());
  const auto limit = options.connect_timeout;
  auto made = make(worker, std::move(keep_alive), std::move(options));
  if (!made) return made;
  (*made)->observers().set_observer(listener_);
  (*made)->session().await_hello(limit);
  return made;
}

result<std::shared_ptr<endpoint_core>> pending_connection::accept_elsewhere(worker_core& worker) {
  auto made = make(worker, nullptr, endpoint_options());
  if (made) (*made)->session().await_hello(std::chrono::nanoseconds::zero());
  return made;
}

result<std::shared_ptr<endpoint_core>> pending_connection::make(
    worker_core& worker, std::shared_ptr<worker_core> keep_alive, endpoint_options options) {
  if (!options.terms) options.terms = listener_->terms();
  const std::error_code unusable = complaint_about(*options.terms, worker.context().features());
  if (unusable) return failure{unusable};
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request_;
  options.error_handling = error_handling_mode::peer;
  auto made = endpoint_core::make(worker, std::move(keep_alive), params,
                                  endpoint_core::role::acceptor, std::move(options));
  request_ = nullptr;  // UCX's; what throws has left it alone
  if (made) (*made)->set_peer(peer_);
  return made;
}

void pending_connection::tell_of_failure(worker_core& worker, const failure& why) const {
  std::string line = "no connection with " + to_string(peer_) +
                     ", which has gone already, or has a UCX of a version that does not connect "
                     "with this one's: " +
                     why.code.message();
  if (!why.text.empty()) line.append(" (").append(why.text).append(")");
  worker.context().log().write(log_level::warning, line);
}

const socket_address& pending_connection::local() const noexcept { return listener_->address(); }

worker_core& pending_connection::worker() const noexcept { return listener_->worker(); }

void pending_connection::refuse(errc why, std::string_view words) {
  worker_core& worker = listener_->worker();
  const std::lock_guard guard(worker.lock());
  if (!worker.context().has(feature::am) || !listener_->begin_refusal()) return reject();
  const auto accepted = accept(worker, nullptr, endpoint_options());
  if (!accepted) return listener_->end_refusal();
  const std::shared_ptr<endpoint_core>& peer = *accepted;
  peer->session().refuse_hello(
      {make_error_code(told_to_peers(why)), shown(words, introduction::most_words)});
  worker.connections().served().serve(peer);
}

connection_request core_access::make_connection_request(
    std::unique_ptr<pending_connection> pending) noexcept {
  return connection_request(std::move(pending));
}

}  // namespace ucx::detail
