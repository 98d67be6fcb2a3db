#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ucx/socket_address.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

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
