#include "ucx/endpoint.hpp"

#include <utility>

#include "detail/context_core.hpp"
#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/listener_core.hpp"
#include "detail/operation_pools.hpp"
#include "detail/pending_connection.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::endpoint_core;
using detail::worker_core;
using role = endpoint_core::role;

std::shared_ptr<worker_core> usable(const worker& parent, std::error_code& ec) {
  std::shared_ptr<worker_core> core = core_access::core(parent);
  ec = core ? std::error_code() : make_error_code(errc::closed);
  return core;
}

detail::clock::time_point connect_deadline(worker_core& worker, std::chrono::nanoseconds timeout) {
  if (timeout <= timeout.zero()) timeout = worker.options().connect_timeout;
  return worker.api().now() + timeout;
}

std::shared_ptr<endpoint_core> connect(const worker& parent, const worker_address& peer,
                                       endpoint_options options, std::error_code& ec) {
  const std::shared_ptr<worker_core> worker = usable(parent, ec);
  if (ec) return nullptr;
  if (peer.empty()) {
    ec = errc::bad_address;
    return nullptr;
  }
  const auto deadline = connect_deadline(*worker, options.connect_timeout);
  const std::lock_guard guard(worker->lock());
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.native().data());
  auto made = endpoint_core::make(*worker, worker, params, role::initiator, std::move(options), ec);
  if (made) made->say_hello(deadline);
  return made;
}

std::shared_ptr<endpoint_core> connect(const worker& parent, const socket_address& peer,
                                       endpoint_options options, std::error_code& ec) {
  const std::shared_ptr<worker_core> worker = usable(parent, ec);
  if (ec) return nullptr;
  if (peer.empty() || peer.port() == 0) {
    ec = errc::bad_address;
    return nullptr;
  }
  if (peer.is_v6() && !worker->context().speaks_ipv6()) {
    ec = errc::not_supported;
    return nullptr;
  }
  if (worker->in_handler()) {
    ec = errc::would_deadlock;
    return nullptr;
  }
  const auto deadline = connect_deadline(*worker, options.connect_timeout);
  std::shared_ptr<endpoint_core> made;
  {
    const std::lock_guard guard(worker->lock());
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = peer.native();
    params.sockaddr.addrlen = peer.native_size();
    // A connection by sockets needs UCX's error handling, which also tells of a refusal.
    options.failure = peer_failure::detected;
    made = endpoint_core::make(*worker, worker, params, role::initiator, std::move(options), ec);
    if (!made) return nullptr;
    made->set_peer(peer);
    made->say_hello(deadline);
  }
  made->wait_connected(ec);
  return made;
}

std::shared_ptr<endpoint_core> accept(const worker& parent, connection_request& request,
                                      endpoint_options options, std::error_code& ec) {
  const std::shared_ptr<worker_core> worker = usable(parent, ec);
  if (ec) return nullptr;
  auto& pending = core_access::pending(request);
  if (!pending) {
    ec = errc::closed;
    return nullptr;
  }
  return pending->accept(*worker, worker, std::move(options), ec);
}

[[noreturn]] void fail(std::error_code ec, const std::string& what,
                       const std::shared_ptr<endpoint_core>& core) {
  throw error(ec, core && !core->words().empty() ? what + " (" + core->words() + ")" : what);
}

}  // namespace

endpoint::endpoint(const worker& parent, const worker_address& peer, endpoint_options options) {
  std::error_code ec;
  core_ = connect(parent, peer, std::move(options), ec);
  if (ec) fail(ec, "connecting by worker address", core_);
}

endpoint::endpoint(const worker& parent, const worker_address& peer, endpoint_options options,
                   std::error_code& ec)
    : core_(connect(parent, peer, std::move(options), ec)) {
  if (ec) core_.reset();
}

endpoint::endpoint(const worker& parent, const socket_address& peer, endpoint_options options) {
  std::error_code ec;
  core_ = connect(parent, peer, std::move(options), ec);
  std::string what = "connecting to " + to_string(peer);
  if (ec == errc::not_supported) what += detail::no_ipv6;
  if (ec) fail(ec, what, core_);
}

endpoint::endpoint(const worker& parent, const socket_address& peer, endpoint_options options,
                   std::error_code& ec)
    : core_(connect(parent, peer, std::move(options), ec)) {
  if (ec) core_.reset();
}

endpoint::endpoint(const worker& parent, connection_request&& request, endpoint_options options) {
  std::error_code ec;
  core_ = accept(parent, request, std::move(options), ec);
  if (ec) fail(ec, "accepting a connection from " + to_string(request.peer()), core_);
}

endpoint::endpoint(const worker& parent, connection_request&& request, endpoint_options options,
                   std::error_code& ec)
    : core_(accept(parent, request, std::move(options), ec)) {}

endpoint::endpoint(endpoint&& other) noexcept = default;
endpoint& endpoint::operator=(endpoint&& other) noexcept = default;
endpoint::~endpoint() = default;

void endpoint::wait_connected() {
  std::error_code ec;
  wait_connected(ec);
  if (ec) fail(ec, "connecting to " + (core_ ? core_->peer_name() : "nobody"), core_);
}

void endpoint::wait_connected(std::error_code& ec) {
  if (!core_) {
    ec = errc::closed;
    return;
  }
  core_->wait_connected(ec);
}

std::error_code endpoint::status() const noexcept {
  if (!core_) return errc::closed;
  const std::lock_guard guard(core_->worker().lock());
  return core_->status();
}

request endpoint::start_flush(const io_options& options) {
  if (!core_) return request();
  detail::worker_core& worker = core_->worker();
  const std::lock_guard guard(worker.lock());
  detail::flush_operation* flush = worker.pools().flushes.take();
  flush->begin(worker, core_, nullptr, true, worker.deadline_after(options.timeout));
  return core_access::make_request(flush);
}

void endpoint::flush(const io_options& options) { start_flush(options).wait(); }

void endpoint::flush(std::error_code& ec, const io_options& options) {
  start_flush(options).wait(ec);
}

void endpoint::close(close_mode mode) {
  std::error_code ec;
  close(mode, ec);
  if (ec) fail(ec, "closing the connection to " + core_->peer_name(), core_);
}

void endpoint::close(close_mode mode, std::error_code& ec) {
  ec.clear();
  if (!core_) return;
  core_->close(mode, ec);
  core_->worker().settle();
}

socket_address endpoint::peer() const { return core_ ? core_->peer() : socket_address(); }

std::vector<std::string> endpoint::transports() const {
  if (!core_) return {};
  const std::lock_guard guard(core_->worker().lock());
  return core_->transports();
}

}  // namespace ucx
