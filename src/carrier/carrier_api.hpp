// The seam to UCX, played by sockets of our own: no UCX worker, and nothing that reaches memory.
#pragma once

#include <memory>

#include "base/logger.hpp"
#include "os/unix_peer.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::detail {

class tls_context;

/// The settings of a context over sockets. `ucp_api::init` takes them in the place of UCX's
/// configuration.
struct socket_configuration {
  trusted_peers trusted = {};             ///< Over Unix sockets.
  logger* log = nullptr;                  ///< REQUIRES: it outlives the context.
  std::shared_ptr<tls_context> tls = {};  ///< Nothing: in the clear.
  /// With TLS, its Unix sockets are in the clear: there the system names the peer's user.
  bool clear_unix = false;
};

/// Returns the api whose connections are TCP sockets. It offers active messages, listeners and
/// wake-up, as UCX does. Keys, registrations and worker addresses are UCS_ERR_UNSUPPORTED. `init`
/// takes a `socket_configuration` in place of UCX's, or nothing.
ucp_api& socket_api() noexcept;

/// The transport that a context's options name to have it, and the resource that it has then.
inline constexpr const char* socket_transport = "socket";
inline constexpr const char* socket_resource = "socket/tcp";
/// Likewise, by TLS.
inline constexpr const char* tls_transport = "tls";
inline constexpr const char* tls_resource = "tls/tcp";
/// Named beside "tls": Unix sockets are in the clear, and a server on loopback has one, too.
inline constexpr const char* unix_transport = "unix";
/// Alone, it means UCX, with its own choice of transports.
inline constexpr const char* ucx_transport = "ucx";
/// The resource of a connection over a Unix socket.
inline constexpr const char* unix_resource = "socket/unix";

}  // namespace ucx::detail
