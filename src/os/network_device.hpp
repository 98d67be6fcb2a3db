// Which of UCX's network devices a connection needs.
#pragma once

#include <string>
#include <vector>

#include "os/rdma_port.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// The network devices that a context may use where its user named none, and why these.
struct device_limit {
  std::vector<std::string> devices = {};  ///< Nothing: there is no limit.
  std::string why = {};
  /// Ports of RDMA devices that are left out, because they are on the networks of other interfaces.
  struct other_port {
    std::string name;
    std::string why;
  };
  std::vector<other_port> others = {};
  bool is_without_rdma = false;  ///< No RDMA device is to be used; `why` says so.
  std::string towards = {};  ///< "host:port" of the server that it is made for, as a URL has them.
  /// Over sockets: why the server is not reached by a Unix socket; empty where none was looked for.
  std::string without_unix = {};
  bool is_near = false;       ///< Over sockets: it is for processes of this machine alone.
  bool is_of_server = false;  ///< Certificates are those of the options alone.
};

/// Returns the limit of a context that listens on `local`: UCX opens sockets on every interface
/// otherwise. It has the interface that has the address. Unless that is loopback, it also has
/// usable ports of RDMA devices ("mlx5_0:1"). These have addresses of this interface, or of none
/// that is known, as InfiniBand's. There is no limit for a wildcard, and where
/// the interface is not found.
device_limit devices_of(const socket_address& local,
                        const std::vector<rdma_port>& ports = rdma_ports_with_interfaces());

/// Returns whether an interface of this machine shows the address. UCX finds no way from others,
/// such as 127.0.0.5, and reports no error.
bool is_shown_by_interface(const socket_address& local);

/// Returns the address of this machine that the way to `peer` begins at, with any port; an empty
/// one where there is no way. Sends nothing.
socket_address source_towards(const socket_address& peer);

/// Returns the limit of a context that connects to `peer`: that of the interface that routes to it.
/// Sends nothing.
device_limit devices_towards(const socket_address& peer);

}  // namespace ucx::detail
