#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/old_option.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

class endpoint;

/// The effect of `close()` on operations that are in flight.
enum class close_mode {
  flush,  ///< Waits for them, within the worker's `close_timeout`, and says goodbye.
  abort,  ///< Ends them at once; they end with `errc::canceled`.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(close_mode value) noexcept;

/// Tells whether UCX watches the connection (its mode PEER, which excludes shared memory in UCX).
enum class error_handling_mode {
  automatic,  ///< `none` on a context whose transports are all of one host; else `peer`.
  peer,       ///< UCX reports a closed connection, and ucxio's heartbeat a silent peer.
  none,       ///< For one host, over shared memory. The end of the peer's process is noticed.
#if UCXIO_OLD_NAMES
  detected [[deprecated("peer")]] = peer,
  undetected [[deprecated("none")]] = none,
#endif
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(error_handling_mode value) noexcept;

/// The moment at which a constructor that connects by socket address returns. The other
/// constructors have no choice. By worker address, and for a request, they return at once. By name,
/// they return when the peer has answered.
enum class connect_wait {
  for_peer,  ///< Returns when the peer has answered, and fails if it does not.
  none,      ///< Returns at once: `events` and `wait_connected()` tell.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(connect_wait value) noexcept;

/// The options of an endpoint. An option that does not fit the way of connecting fails with
/// `invalid_argument`, and the text names it.
struct endpoint_options {
  /// How long connecting may take. For an accepted request, how long the peer's hello may take.
  /// Zero, or less, means the worker's `connect_timeout`. Several addresses of one name share it.
  std::chrono::nanoseconds connect_timeout = std::chrono::nanoseconds::zero();
  /// For one version: `error_handling`.
  detail::old_option<error_handling_mode> failure = {};
  /// For connections by worker address. UCX watches every other connection: `none` is an
  /// error there.
  error_handling_mode error_handling = failure.value_or(error_handling_mode::automatic);
  /// For connections by socket address. By name, `none` is an error: to look a name up takes time,
  /// which `connection_manager` does not wait for.
  connect_wait wait = connect_wait::for_peer;
  /// For connections by socket address or name: the address of this machine to connect from, where
  /// it is not empty. Port 0 is any port. An error elsewhere.
  socket_address local = {};
  /// The terms of this connection. Without them, those of the listener count, else those of the
  /// worker.
  std::optional<connection_terms> terms = {};
  /// For connections by worker address with `error_handling_mode::none`: another connection to the
  /// same process, of any worker, that UCX watches. When that one is lost, or the peer closes it,
  /// this one fails for the same reason. It serves where the system does not report the process's
  /// end (`connection_report::watched`). The other connection has to be driven like everything
  /// else. It stays open as long as this one. An error elsewhere, because UCX watches those
  /// connections itself.
  const endpoint* watched_by = nullptr;
  /// The peer is a UCX worker without this library. It is sent no hello, no messages and no
  /// heartbeat. The connection is `active` when UCX has connected the two. Regions of the peer
  /// (`remote_descriptor::of_key`) are reached by UCX alone. Everything that the peer would have to
  /// answer fails with `not_supported`. An error for accepted requests.
  bool plain_peer = false;
  /// Tell of this connection. A constructor that fails, or that waits for the peer, tells its
  /// caller alone why the connection was not made.
  /// Lifetime: until `close()` or the endpoint's destructor returns.
  connection_events events = {};
  /// For one version: `events` where they say nothing.
  detail::old_handler<move_only_handler<const connection_report&>> on_established = {};
  detail::old_handler<move_only_handler<const connection_end&>> on_refused = {};
  detail::old_handler<move_only_handler<const connection_end&>> on_closed = {};
};

#if UCXIO_OLD_NAMES
using peer_failure [[deprecated("error_handling_mode")]] = error_handling_mode;
#endif

}  // namespace ucx
