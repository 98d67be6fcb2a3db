// A server by plain UCX, as programs have it that name that transport.
#pragma once

#include <system_error>

#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {

/// Returns the options with UCX named, unless they name transports, or a Unix socket.
inline server_options by_ucx(server_options options) {
  if (options.context.transports.empty() && !options.bind.starts_with("unix:")) {
    options.context.transports = {"ucx"};
  }
  return options;
}

/// Without a word about transports it is by UCX, and by default not by TLS.
class ucx_server : public server {
 public:
  explicit ucx_server(const server_options& options = {}, std::error_code& ec = throws)
      : server(by_ucx(options), ec) {}
};

}  // namespace ucx::test
