// The TCP connections that this process has begun: a server knows its own process by them.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace ucx::detail {

/// Both addresses of a connection, of the side that began it first. One machine has no two of them
/// at a time.
using tcp_flow = std::array<std::byte, 36>;

/// Returns nothing for what is not TCP. An IPv4 address is the same as its form in IPv6.
std::optional<tcp_flow> flow_of(const sockaddr_storage& from, const sockaddr_storage& to) noexcept;

/// Safe from any thread. One of the process.
class own_flows {
 public:
  /// Errors: std::bad_alloc, by the first call.
  static own_flows& of_process();
  /// Returns the process's, if there was a call of `of_process`.
  static own_flows* find() noexcept;

  /// `socket` is the number (SO_COOKIE) of the socket that has begun it.
  void add(const tcp_flow& begun, std::uint64_t socket);
  void remove(const tcp_flow& ending, std::uint64_t socket) noexcept;
  /// Returns whether the connection that was accepted at `to` is of a socket that was added. When
  /// the peer resets a connection, the system gives its port away while the socket is open. So the
  /// system is asked whose the flow is now. A system that tells nothing has no such flows.
  bool has(const sockaddr_storage& from, const sockaddr_storage& to) const noexcept;

 private:
  std::uint64_t socket_of(const tcp_flow& flow) const noexcept;

  mutable std::mutex mutex_;
  std::map<tcp_flow, std::uint64_t> sockets_;
};

}  // namespace ucx::detail
