// The TCP ports by which the data of UCX's peers come.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "connection/port_guard.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Returns whether a worker's address tells peers of this port, at this IP address. The IP address
/// is in front of the port, but of a loopback one no more than that it is.
bool tells_port(std::span<const std::byte> worker_address, const socket_address& local);

/// Returns the listening sockets of this process that belong to a worker with this address. UCX
/// keeps them to itself, but tells their ports to peers. None where UCX tells them otherwise than
/// its versions 1.13 to 1.22. Throws std::bad_alloc.
std::vector<guarded_port> transport_ports(std::span<const std::byte> worker_address);

}  // namespace ucx::detail
