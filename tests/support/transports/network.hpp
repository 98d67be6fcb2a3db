// The network that tests go over: TCP over loopback, or, where the environment says so, an RDMA
// device of this machine.
//   UCXIO_ROUTE=verbs           the routes by address and by listener go over verbs
//   UCXIO_ROUTE=socket          they go over sockets, without UCX
//   UCXIO_ROUTE=tls             likewise, by TLS, with the token of UCXIO_TOKEN
//   UCXIO_RDMA_DEVICE=rxe0:1    the device, which has an IPv4 address
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ucx/context.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker_options.hpp"

namespace ucx::test {

bool goes_over_verbs();
/// Over Unix sockets, too.
bool goes_over_sockets();

/// Returns the beginning of the routes' names: "tcp", "verbs", "socket" or "unix".
std::string network_name();

/// Returns the options of a context that reaches nothing but this machine, over the network.
context_options over_network();

/// Returns the address of this machine in the network.
std::string network_host();

/// Returns an address of it at which to listen.
socket_address any_port_of_network();

/// Returns "HOST:PORT".
std::string at_port(std::uint16_t port = 0);

/// Returns the options of a server there, with any port unless `options` name one. It is by UCX,
/// unless they name transports, or it is over Unix sockets.
server_options served_there(server_options options = {});

/// Returns the options of a region whose owner's process answers: a device also serves the regions
/// of a process that is stopped.
remote_region_options answered_by_the_owner();

/// Returns how long a test waits for what takes at most so long over loopback: an RDMA device may
/// be emulated by an emulated processor, and ThreadSanitizer's programs are some ten times as slow.
std::chrono::nanoseconds patience(std::chrono::nanoseconds usual);

/// Returns the options with longer deadlines there, instead of those that are the defaults.
worker_options patient(worker_options options);

}  // namespace ucx::test
