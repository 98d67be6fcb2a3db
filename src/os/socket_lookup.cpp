#include "os/socket_lookup.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ucx::detail {
namespace {

struct question {
  ::nlmsghdr head;
  ::inet_diag_req_v2 asked;
};

/// States of a socket, as the system numbers them; the header that has names for these has none for
/// what else is needed here. A new one is a connection that its listener has not accepted yet.
constexpr unsigned syn_received = 3;
constexpr unsigned time_wait = 6;
constexpr unsigned listens = 10;
constexpr unsigned new_connection = 12;

bool is_connected(unsigned state) noexcept {
  return state != listens && state != syn_received && state != time_wait && state != new_connection;
}

/// One end of a connection, as the question has it.
void put_end(const socket_address& end, std::uint32_t (&host)[4], std::uint16_t& port) noexcept {
  if (end.is_v4()) {
    ::sockaddr_in address = {};
    std::memcpy(&address, end.native(), sizeof address);
    host[0] = address.sin_addr.s_addr;
    port = address.sin_port;
  } else {
    ::sockaddr_in6 address = {};
    std::memcpy(&address, end.native(), sizeof address);
    std::memcpy(host, &address.sin6_addr, sizeof address.sin6_addr);
    port = address.sin6_port;
  }
}

std::uint32_t interface_of(const socket_address& end) noexcept {
  if (!end.is_v6()) return 0;
  ::sockaddr_in6 address = {};
  std::memcpy(&address, end.native(), sizeof address);
  return address.sin6_scope_id;
}

/// Reads what is at `offset` of a message, if it is long enough.
template <class Part>
bool take(const std::array<char, 1024>& message, std::size_t length, std::size_t offset,
          Part& into) noexcept {
  if (length < offset + sizeof into) return false;
  std::memcpy(&into, message.data() + offset, sizeof into);
  return true;
}

/// Returns how many bytes have come, of what an answer says behind its first part.
std::uint64_t received_of(const std::array<char, 1024>& message, std::size_t length) noexcept {
  std::size_t at = sizeof(::nlmsghdr) + sizeof(::inet_diag_msg);
  ::rtattr part = {};
  while (take(message, length, at, part) && part.rta_len >= sizeof part) {
    constexpr std::size_t place = offsetof(::tcp_info, tcpi_bytes_received);
    std::uint64_t received = 0;
    if (part.rta_type == INET_DIAG_INFO && part.rta_len >= sizeof part + place + sizeof received &&
        take(message, length, at + sizeof part + place, received)) {
      return received;
    }
    at += NLMSG_ALIGN(part.rta_len);
  }
  return 0;
}

}  // namespace

socket_lookup::socket_lookup() noexcept
    : system_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {}

/// The answer of the system about one socket.
struct socket_lookup::answer {
  std::array<char, 1024> message;
  std::size_t length = 0;
  ::inet_diag_msg socket = {};
};

std::uint64_t socket_lookup::find(const socket_address& local,
                                  const socket_address& peer) noexcept {
  received_ = 0;
  answer told;
  if (peer.empty() || local.is_v4() != peer.is_v4() || !ask(local, peer, told)) return 0;
  // Without such a connection the system tells of the socket that would take it: the listener.
  const std::uint16_t peer_port = htons(peer.port());
  if (told.socket.id.idiag_dport != peer_port || !is_connected(told.socket.idiag_state)) return 0;
  received_ = received_of(told.message, told.length);
  return std::uint64_t{told.socket.id.idiag_cookie[1]} << 32U | told.socket.id.idiag_cookie[0];
}

std::optional<listening_facts> socket_lookup::find_listener(const socket_address& local) noexcept {
  answer told;
  if (!ask(local, socket_address(), told) || told.socket.idiag_state != listens)
    return std::nullopt;
  return listening_facts{told.socket.idiag_inode, told.socket.idiag_uid};
}

/// Asks for the socket at `local` with that peer. The system has answered before the question's
/// call returned.
bool socket_lookup::ask(const socket_address& local, const socket_address& peer,
                        answer& told) noexcept {
  if (!system_ || local.empty() || local.is_unix()) return false;
  question said = {};
  said.head.nlmsg_len = sizeof said;
  said.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  said.head.nlmsg_flags = NLM_F_REQUEST;
  said.head.nlmsg_seq = ++questions_;
  said.asked.sdiag_family = local.is_v4() ? AF_INET : AF_INET6;
  said.asked.sdiag_protocol = IPPROTO_TCP;
  said.asked.idiag_states = ~std::uint32_t{0};
  said.asked.idiag_ext = 1U << (INET_DIAG_INFO - 1U);
  put_end(local, said.asked.id.idiag_src, said.asked.id.idiag_sport);
  put_end(peer, said.asked.id.idiag_dst, said.asked.id.idiag_dport);
  said.asked.id.idiag_if = interface_of(peer);
  said.asked.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  said.asked.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(system_.get(), &said, sizeof said, 0) != sizeof said) return false;
  ::nlmsghdr head = {};
  do {
    const ::ssize_t got =
        ::recv(system_.get(), told.message.data(), told.message.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    told.length = static_cast<std::size_t>(got);
    if (!take(told.message, told.length, 0, head)) return false;
  } while (head.nlmsg_seq != questions_);  // an earlier answer, left unread
  // Else it is an error: mostly, that there is none.
  return head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
         take(told.message, told.length, sizeof head, told.socket);
}

}  // namespace ucx::detail
