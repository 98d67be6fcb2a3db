// The Unix socket that a server on loopback has beside its port, for clients of the same user.
#pragma once

#include <string>

#include "base/result.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Returns the path of the socket of the process that listens at `port`, an address of loopback:
/// `tls-PORT-NUMBER.sock` in `socket_directory()`. NUMBER is that of the listening socket, as the
/// system has it. It differs for each server, each address and each network namespace. The server
/// and its clients find it in the same way. The file of a killed server has the number of a socket
/// that is gone, so no client looks for it.
/// Errors: not_supported (the system does not tell who listens there), not_secure (a process of
/// another user does), those of `socket_directory`.
result<std::string> socket_beside(const socket_address& port);

/// Likewise, for a client. The file is there, and is this user's.
/// Errors: also no_such_name.
result<std::string> find_socket_beside(const socket_address& port);

/// Says that a process of another user listens at `port`; empty where none does, or the system does
/// not tell.
std::string stranger_at(const socket_address& port);

/// Removes what killed servers left.
void remove_stale_sockets_beside() noexcept;

}  // namespace ucx::detail
