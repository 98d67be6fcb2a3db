#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucx {

/// The facts that one side tells the other when they connect, and its demands on the connection.
/// They need a context with `feature::am`. Without it, terms that are not empty fail with
/// `feature_disabled`, before UCX is called. This holds for terms of a worker, a listener and an
/// endpoint.
struct connection_terms {
  /// Bytes for the peer, with any meaning: 1024 bytes at most (`invalid_argument`).
  std::vector<std::byte> info = {};
  /// Refuses a second connection between the same two workers (`already_exists`), whichever of them
  /// began. An initiator refuses also a second one to the same socket address. Where both sides
  /// begin at once, at most one connection is kept. By worker address it may be none. Where an
  /// initiator gets `already_exists`, its acceptor may have seen that connection established. The
  /// two ends of a worker's connection to itself count as one connection.
  bool unique = false;
  /// Fails with `no_rdma` unless every lane is of RDMA hardware. The connection never falls back to
  /// TCP unnoticed. Hardware that carries messages only ("ud") is enough: see `transports` for
  /// more.
  bool require_rdma = false;
  /// Every lane has to use one of these transports, by UCX's names ("tcp", "posix", "rc_mlx5", or
  /// "rc" for all of that family). Empty: any. Fails with `not_supported`.
  std::vector<std::string> transports = {};
};

}  // namespace ucx
