// The addresses of peers, and of workers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "ucx/error.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The address of a worker. A peer can connect by it without any IP address. It is a value that is
/// printable, comparable, hashable and serialisable (`docs/reference/wire-format.md`). The bytes
/// are UCX's own and opaque. Each process that has them can reach the worker.
class UCXIO_EXPORT worker_address {
 public:
  /// Makes an empty address, which names no worker.
  worker_address() noexcept = default;

  /// Makes an address of UCX's own bytes, as `ucp_worker_get_address` gives them.
  static worker_address from_native(std::span<const std::byte> bytes);

  /// Returns UCX's own bytes, unframed.
  /// Lifetime: the address.
  std::span<const std::byte> native() const noexcept { return bytes_; }

  /// Returns the framed form: magic, version, length, UCX's bytes, checksum.
  std::vector<std::byte> encode() const;

  /// Reads the framed form. Every truncation and every flipped bit is `errc::bad_address`: UCX
  /// itself takes such bytes without a length and may crash on them.
  /// Errors: bad_address, version_mismatch.
  static worker_address decode(std::span<const std::byte> wire, std::error_code& ec = throws);

  bool empty() const noexcept { return bytes_.empty(); }

  friend bool operator==(const worker_address&, const worker_address&) = default;
  friend auto operator<=>(const worker_address& a, const worker_address& b) noexcept {
    return a.bytes_ <=> b.bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Returns the framed form in hexadecimal.
UCXIO_EXPORT std::string to_string(const worker_address& address);

template <>
inline constexpr bool detail::is_printed<worker_address> = true;

/// Reads a text of `to_string`.
/// Errors: bad_address, version_mismatch.
UCXIO_EXPORT worker_address parse_worker_address(std::string_view text,
                                                 std::error_code& ec = throws);

namespace detail {
struct core_access;

/// A host that is looked up when a connection to it is made.
struct named_host {
  std::string host;
  std::uint16_t port;
};
}  // namespace detail

/// The address of a peer. It has one of three kinds: a worker address, the socket address of a
/// listener, or the host and port of a listener.
class peer_address {
 public:
  peer_address(worker_address address)  // NOLINT(google-explicit-constructor): it is one
      : place_(std::move(address)) {}
  peer_address(const socket_address& address)  // NOLINT(google-explicit-constructor): it is one
      : place_(address) {}
  /// Takes a host's name, or a numeric address of it. It is looked up at each attempt to connect.
  peer_address(std::string_view host, std::uint16_t port)
      : place_(detail::named_host{std::string(host), port}) {}

 private:
  friend struct detail::core_access;
  std::variant<worker_address, socket_address, detail::named_host> place_;
};

}  // namespace ucx

template <>
struct UCXIO_EXPORT std::hash<ucx::worker_address> {
  std::size_t operator()(const ucx::worker_address& address) const noexcept;
};
