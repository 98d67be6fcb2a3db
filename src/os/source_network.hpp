// The network that an address belongs to, as far as one owner has it.
#pragma once

#include <sys/socket.h>

#include <string>

namespace ucx::detail {

/// Returns an IPv4 address, also of one that is mapped to IPv6: "10.0.0.7". Of another IPv6 address
/// it is the network of 64 bits: "2001:db8:1:2::/64". Of anything else it is empty.
std::string source_network(const ::sockaddr& of);

}  // namespace ucx::detail
