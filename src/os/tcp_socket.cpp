#include "os/tcp_socket.hpp"

#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstddef>
#include <system_error>

namespace ucx::detail::tcp_socket {
namespace {

using asks_name = int (*)(int, ::sockaddr*, ::socklen_t*);

/// Returns what ::getsockname or ::getpeername says; an empty address if nothing.
socket_address name_of(int descriptor, asks_name ask) noexcept {
  ::sockaddr_storage found = {};
  ::socklen_t size = sizeof found;
  if (ask(descriptor, reinterpret_cast<::sockaddr*>(&found), &size) != 0) return {};
  std::error_code ignored;  // a socket of another family
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&found), size, ignored);
}

/// Fields that an older system does not tell are 0.
::tcp_info facts_of(int descriptor) noexcept {
  ::tcp_info known = {};
  ::socklen_t size = sizeof known;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &known, &size) == 0 ? known : ::tcp_info{};
}

}  // namespace

socket_address local(int descriptor) noexcept { return name_of(descriptor, &::getsockname); }
socket_address peer(int descriptor) noexcept { return name_of(descriptor, &::getpeername); }

int option(int descriptor, int name) noexcept {
  int value = 0;
  ::socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool is_listening(int descriptor) noexcept { return option(descriptor, SO_ACCEPTCONN) == 1; }

std::uint64_t number(int descriptor) noexcept {
  std::uint64_t cookie = 0;
  ::socklen_t size = sizeof cookie;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

bool was_connected(int descriptor) noexcept {
  return !peer(descriptor).empty() || facts_of(descriptor).tcpi_segs_in > 0;
}

std::optional<std::uint64_t> received(int descriptor) noexcept {
  const ::tcp_info facts = facts_of(descriptor);
  // Every connection begins with one, and an older system that tells less leaves this out first.
  static_assert(offsetof(::tcp_info, tcpi_segs_in) > offsetof(::tcp_info, tcpi_bytes_received));
  if (facts.tcpi_segs_in == 0) return std::nullopt;
  return facts.tcpi_bytes_received;
}

void refuse(int listening) noexcept {
  ::sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);  // of each packet
  const ::sock_fprog program{1, &none};
  ::setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void let_in_who_speaks(int listening, int seconds) noexcept {
  ::setsockopt(listening, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

}  // namespace ucx::detail::tcp_socket
