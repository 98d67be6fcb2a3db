// Facts of a TCP socket, which the system tells by descriptor.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "base/owned_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail::tcp_socket {

/// Where it is, and where its peer is; empty if it has none, or is no socket of IP.
socket_address local(int descriptor) noexcept;
socket_address peer(int descriptor) noexcept;

/// An option of SOL_SOCKET; -1 if it can not be had.
int option(int descriptor, int name) noexcept;
bool is_listening(int descriptor) noexcept;

/// Returns the number of a socket, which no other one gets; 0 if that can not be had.
std::uint64_t number(int descriptor) noexcept;
/// Calls `take(descriptor)` where the descriptor is of the socket of that number: it is UCX's, and
/// may be another file's at any moment. So `take` gets a duplicate, unless no descriptor is left. A
/// file that is no socket is not duplicated, because closing a duplicate would end the process's
/// locks on it. Returns whether `take` was called.
template <class Take>
bool with_socket(int descriptor, std::uint64_t which, Take&& take) {
  if (which == 0 || number(descriptor) != which) return false;
  const owned_descriptor held(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  const int found = held ? held.get() : descriptor;
  if (number(found) != which) return false;
  take(found);
  return true;
}
/// Returns whether it was ever connected: one that the peer has reset has no name of a peer any
/// more.
bool was_connected(int descriptor) noexcept;
/// Returns how many bytes have come; nothing where the system does not count them, or it is no
/// connection.
std::optional<std::uint64_t> received(int descriptor) noexcept;

/// Has the system leave connections unanswered from now on; where it can not, they are let in.
void refuse(int listening) noexcept;
/// Lets in a peer that has said nothing after so many seconds, and not before.
void let_in_who_speaks(int listening, int seconds) noexcept;

}  // namespace ucx::detail::tcp_socket
