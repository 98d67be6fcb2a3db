// Where a listener listens: at an IP address, or at a Unix socket, which has a file.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "os/socket_file.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class worker_core;

struct listening_place {
  socket_address address = {};
  std::unique_ptr<socket_file> file = {};  ///< Of a Unix socket.

  /// Chooses a file where the address has no path.
  /// Errors: not_supported (UCX has no Unix sockets), those of `socket_file::claim`, and of
  /// `listen_error`.
  static result<listening_place> claim(const worker_core& worker, const socket_address& wanted);
  /// Returns where the listener listens, with the port that the system chose.
  result<socket_address> bound(ucp_api& api, ucp_listener_h listener) const;
};

}  // namespace ucx::detail
