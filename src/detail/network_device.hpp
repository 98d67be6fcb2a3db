// Which of UCX's network devices a connection needs.
#pragma once

#include <string>
#include <vector>

#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Returns the devices to limit a context to that listens on `local`: UCX opens sockets on every
/// interface otherwise. The interface that has the address, and, unless that is loopback, the
/// machine's RDMA devices ("mlx5_0:1"). Nothing (no limit) for a wildcard, and where the interface
/// is not found.
std::vector<std::string> devices_of(const socket_address& local);

/// Returns whether an interface of this machine shows the address. UCX finds no way from others,
/// such as 127.0.0.5, and tells nobody.
bool is_shown_by_interface(const socket_address& local);

/// Returns the machine's RDMA devices with their ports, as UCX names them.
std::vector<std::string> rdma_devices();

/// Returns the address of this machine that the way to `peer` begins at, with any port; an empty
/// one where there is no way. Sends nothing.
socket_address source_towards(const socket_address& peer);

/// Returns the devices for connecting to `peer`: those of the interface that routes to it. Sends
/// nothing.
std::vector<std::string> devices_towards(const socket_address& peer);

}  // namespace ucx::detail
