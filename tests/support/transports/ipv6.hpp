// Whether this machine speaks IPv6 to itself.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ucx::test {

/// Returns whether a socket can be bound to ::1.
inline bool has_ipv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
  if (socket < 0) return false;
  ::sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound =
      ::bind(socket, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return bound;
}

}  // namespace ucx::test
