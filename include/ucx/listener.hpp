#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_request.hpp"
#include "ucx/export.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class listener_core;
}

/// Called from progress for every peer that wants to connect. It may make an `endpoint` of the
/// request now, or keep the request and do so later.
using accept_handler = move_only_handler<connection_request>;

/// Accepts peers on one socket address.
/// Threads: as the worker's.
class UCXIO_EXPORT listener {
 public:
  /// Listens on `address`; with port 0 the system chooses one. Peers are accepted by themselves,
  /// and served the regions of the worker's context until they leave. Errors: address_in_use,
  /// permission_denied, bad_address (not an address of this machine), too_many_files, not_supported
  /// (IPv6 on a context whose configuration does not set TCP_AF_PRIO to "inet6": UCX would write
  /// beyond its buffers).
  listener(const worker& parent, const socket_address& address);
  listener(const worker& parent, const socket_address& address, std::error_code& ec);

  /// Listens on `address`; `on_request` decides about each peer.
  listener(const worker& parent, const socket_address& address, accept_handler on_request);
  listener(const worker& parent, const socket_address& address, accept_handler on_request,
           std::error_code& ec);

  listener(listener&& other) noexcept;
  listener& operator=(listener&& other) noexcept;
  /// Stops listening. Connections that were accepted live on.
  ~listener();

  /// Returns the address with the port that is really listened on.
  const socket_address& address() const noexcept;

  /// Stops listening; idempotent.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::listener_core> core_;
};

}  // namespace ucx
