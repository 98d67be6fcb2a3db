// Bounds of what the clients of a server use: docs/how-to/security.md, "Limits on clients".
#pragma once

#include <cstddef>

namespace ucx {

/// Bounds of what some connections use together. 0 means no bound. The server's log tells when one
/// is reached (`warning`).
struct client_limits {
  /// Connections at a time. A further one is refused with `busy`, and the error text says why. It
  /// counts from when it comes until it has ended on the server's side.
  std::size_t connections = 0;
  /// Names that are open at a time, for each connection that has them open. A further one is
  /// refused with `too_many_client_files`.
  std::size_t open_names = 0;
  /// Requests a second: questions about names, and accesses by message, of which a batch is one. A
  /// second's worth may come at once. Further ones are refused with `busy`. Streams do not repeat
  /// these, so bound them far above what a client needs.
  std::size_t requests_per_second = 0;
  /// Bytes that are asked for by message and that the clients have not taken. A further read is
  /// refused with `busy`, unless none is under way. Streams read ahead
  /// (`docs/how-to/tuning.md`): a bound has to be above that.
  std::size_t bytes_in_flight = 0;
};

/// The bounds of a server's clients. A request has to be within all three.
///
/// An identity is a token, or a user at a Unix socket, or the server's own process. Peers without
/// one, by UCX or by TCP without TLS, are one for each source address. Those that connect by worker
/// address are one together.
struct server_limits {
  /// The defaults leave room for others where one opens connections or names without end.
  client_limits per_identity = {.connections = 8'000, .open_names = 1'000'000};
  /// Of a source address; of IPv6 the first 64 bits count. Unix sockets have none.
  client_limits per_address = {};
  /// Of all clients. `server_options::max_clients` bounds those that ask for names, too.
  client_limits in_all = {};
};

}  // namespace ucx
