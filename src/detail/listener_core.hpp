// UCX's listener, and what it does with those who knock.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "detail/ucp_api.hpp"
#include "ucx/listener.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class worker_core;

/// What an error text says of IPv6 on a context that was not made for it.
inline constexpr const char* no_ipv6 =
    ": IPv6 needs a context whose configuration sets TCP_AF_PRIO to \"inet6\"";

class listener_core : public std::enable_shared_from_this<listener_core> {
 public:
  /// Listens. Without `on_request` the worker accepts and serves everybody.
  static std::shared_ptr<listener_core> make(std::shared_ptr<worker_core> worker,
                                             const socket_address& address,
                                             accept_handler on_request, std::string& what,
                                             std::error_code& ec);
  ~listener_core();
  listener_core(const listener_core&) = delete;
  listener_core& operator=(const listener_core&) = delete;

  worker_core& worker() const noexcept { return *worker_; }
  ucp_listener_h handle() const noexcept { return handle_; }
  const socket_address& address() const noexcept { return address_; }
  /// Takes no further request. Those that are pending keep UCX's listener, which rejecting needs.
  void close() noexcept;

 private:
  listener_core(std::shared_ptr<worker_core> worker, accept_handler on_request) noexcept;
  static void on_connection(ucp_conn_request_h request, void* self);
  void connection(ucp_conn_request_h request);

  std::shared_ptr<worker_core> worker_;
  accept_handler on_request_;
  const bool serves_;
  bool closed_ = false;
  ucp_listener_h handle_ = nullptr;
  socket_address address_;
};

}  // namespace ucx::detail
