#pragma once

#include <sys/socket.h>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/error.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// An IPv4 or IPv6 address with a port, or the path of a Unix socket: a value, printable,
/// comparable, hashable.
class UCXIO_EXPORT socket_address {
 public:
  /// Makes an empty address: no family, port 0.
  socket_address() noexcept = default;

  /// Reads a numeric address: "127.0.0.1:7471", "[::1]:7471", "[fe80::1%eth0]:7471". Port 0 lets a
  /// listener choose. Looks no name up. "unix:/run/server.sock" is a Unix socket, whose path is
  /// absolute and has at most 107 bytes. With "unix:" a listener chooses a file: `server_options`.
  /// Errors: bad_address.
  explicit socket_address(std::string_view text, std::error_code& ec = throws);

  /// Makes an address of a numeric host ("::1", "10.0.0.7") and a port.
  /// Errors: bad_address.
  socket_address(std::string_view host, std::uint16_t port, std::error_code& ec = throws);

  /// Copies an address of the operating system.
  /// Errors: bad_address for a family that is neither IP nor Unix.
  static socket_address from_native(const ::sockaddr* address, ::socklen_t length,
                                    std::error_code& ec = throws);

  const ::sockaddr* native() const noexcept;
  ::socklen_t native_size() const noexcept { return size_; }

  bool empty() const noexcept { return size_ == 0; }
  bool is_v4() const noexcept;
  bool is_v6() const noexcept;
  /// Returns whether this is a Unix socket, which no other machine reaches.
  bool is_unix() const noexcept;
  bool is_loopback() const noexcept;
  /// Returns whether this is 0.0.0.0 or ::, which mean every address of the machine.
  bool is_wildcard() const noexcept;

  /// Returns the numeric host, without brackets. Of a Unix socket it is the path.
  std::string host() const;
  std::uint16_t port() const noexcept;
  /// Returns this address with another port.
  socket_address with_port(std::uint16_t port) const noexcept;

  /// Compares family, host bytes or path, port and scope. Equality and order agree.
  friend bool operator==(const socket_address& a, const socket_address& b) noexcept {
    return a.order(b) == 0;
  }
  friend std::strong_ordering operator<=>(const socket_address& a,
                                          const socket_address& b) noexcept {
    return a.order(b);
  }

#if UCXIO_OLD_NAMES
  [[deprecated("use <=>")]] std::strong_ordering compare(
      const socket_address& other) const noexcept {
    return order(other);
  }
#endif

 private:
  std::strong_ordering order(const socket_address& other) const noexcept;

  ::sockaddr_storage storage_ = {};
  ::socklen_t size_ = 0;
};

/// Returns "host:port", IPv6 hosts in brackets, or "unix:path"; "(none)" for an empty address.
UCXIO_EXPORT std::string to_string(const socket_address& address);

template <>
inline constexpr bool detail::is_printed<socket_address> = true;

/// Looks a host name up and returns all addresses, in the resolver's order, with `port`.
/// Errors: host_not_found, whose text names the host and gives the resolver's words; timed_out;
/// busy (64 earlier questions are still unanswered).
/// Cost: nothing for a numeric host. A name takes a thread, which stays in the system's resolver
/// until that answers or gives up, even after `timeout`.
UCXIO_EXPORT std::vector<socket_address> resolve(
    std::string_view host, std::uint16_t port,
    std::chrono::nanoseconds timeout = std::chrono::seconds(5), std::error_code& ec = throws);

/// Returns the IPv4 and IPv6 addresses of this machine's network interface `name` ("eth0"), with
/// `port`. The list may be empty.
/// Errors: host_not_found (there is no such interface).
UCXIO_EXPORT std::vector<socket_address> interface_addresses(std::string_view name,
                                                             std::uint16_t port = 0,
                                                             std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
[[deprecated("the error code comes last")]] inline std::vector<socket_address> resolve(
    std::string_view host, std::uint16_t port, std::error_code& ec,
    std::chrono::nanoseconds timeout = std::chrono::seconds(5)) {
  return resolve(host, port, timeout, ec);
}
#endif

}  // namespace ucx

template <>
struct UCXIO_EXPORT std::hash<ucx::socket_address> {
  std::size_t operator()(const ucx::socket_address& address) const noexcept;
};
