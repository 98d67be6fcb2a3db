// What the system says of a TCP socket, by its descriptor.
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
/// may be another file's at any moment. So `take` gets one of its own, unless there is none left.
/// What is no socket is left alone: closing a second descriptor of a file ends the process's locks
/// on it. Returns whether it was called.
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

/// Has the system leave unanswered who comes from now on; where it can not, they are let in.
void refuse(int listening) noexcept;
/// Who has said nothing is let in after so many seconds, and not before.
void let_in_who_speaks(int listening, int seconds) noexcept;

}  // namespace ucx::detail::tcp_socket
