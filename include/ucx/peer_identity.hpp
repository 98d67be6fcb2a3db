// The identity of a peer, as rules and reports name it: docs/reference/rules.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// A peer that has connected, as this side knows it from its token, its certificate or the system.
/// The peer can not say otherwise. A peer by UCX, or by TCP without TLS, has no identity.
///
/// By TLS it has shown that it has the key of a token, or of a certificate
/// (`docs/how-to/security.md`).
///
/// Over a Unix socket the system tells its user and its groups.
///
/// A connection of this process to itself is the owner's, also by TCP.
///
/// The value tells what was true when the peer connected.
struct peer_identity {
  /// The name of the token, in this side's file of tokens, that let the peer in; else empty.
  std::string token = {};
  /// The name of the certificate by which the peer was let in: "uri:spiffe://cluster/build",
  /// "dns:node7.cluster" or "email:ann@example.org"; else empty (`docs/reference/rules.md`).
  std::string certificate = {};
  /// The user at the other end of a Unix socket.
  std::optional<std::uint32_t> user = {};
  /// All groups of that user's process.
  std::vector<std::uint32_t> groups = {};
  /// The peer is of the user of this process: the same process, or a Unix socket's other end.
  bool is_owner = false;
};

/// Returns `token "build"`, `certificate "dns:node7"`, `user 1000` or `anybody`; of an owner
/// `owner`, and the rest behind it.
UCXIO_EXPORT std::string to_string(const peer_identity& value);

template <>
inline constexpr bool detail::is_printed<peer_identity> = true;

}  // namespace ucx
