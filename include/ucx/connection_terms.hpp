#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucx {

/// What one side tells the other when they connect, and what it asks of the connection. On a
/// context without `feature::am` nobody is told or asked anything: terms that say anything end
/// there with `feature_disabled`, before UCX is called, be they a worker's, a listener's or an
/// endpoint's.
struct connection_terms {
  /// Told to the peer, whatever it means: 1024 bytes at most (`invalid_argument`).
  std::vector<std::byte> info = {};
  /// Refuses a second connection between the same two workers (`already_exists`), whichever of them
  /// began; of an initiator also one to the same socket address. Where both begin at once, one
  /// connection is kept at most, by worker address perhaps neither; that of the initiator who gets
  /// `already_exists` may have stood for its acceptor. The two ends of a worker's connection to
  /// itself count as one connection.
  bool unique = false;
  /// Fails with `no_rdma` unless every lane is of RDMA hardware: TCP is never fallen back to in
  /// silence.
  bool require_rdma = false;
  /// Transports of which every lane has to be one, by UCX's names ("tcp", "posix", "rc_mlx5", or
  /// "rc" for all of that family); empty: any. Fails with `not_supported`.
  std::vector<std::string> transports = {};
};

}  // namespace ucx
