#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/connection_terms.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/socket_address.hpp"

namespace ucx {

class endpoint;

/// What `close()` does with operations that are in flight.
enum class close_mode {
  flush,  ///< Waits for them, within the worker's `close_timeout`, and says goodbye.
  abort,  ///< Ends them at once; they complete with `errc::canceled`.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(close_mode value) noexcept;

/// Whether UCX watches the connection (its mode PEER, which excludes shared memory in UCX).
enum class peer_failure {
  automatic,   ///< `detected`, but on a context whose transports are all of one host: `undetected`.
  detected,    ///< UCX reports a closed connection, and our heartbeat a silent peer.
  undetected,  ///< For one host, over shared memory: the end of the peer's process is noticed.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(peer_failure value) noexcept;

/// What a constructor that connects by socket address waits for. The others have no choice: by
/// worker address, and of a request, they return at once, and by name when the peer has answered.
enum class connect_wait {
  for_peer,  ///< Returns when the peer has answered, and fails if it does not.
  none,      ///< Returns at once: `on_established`, `on_refused` and `wait_connected()` tell.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(connect_wait value) noexcept;

/// How an endpoint is made. What can not be had of the way in which it is connected is
/// `invalid_argument`; the text names the option.
struct endpoint_options {
  /// How long connecting may take, or of a request that is accepted the peer's hello; zero, or
  /// less, means the worker's `connect_timeout`. Several addresses of one name share it.
  std::chrono::nanoseconds connect_timeout = std::chrono::nanoseconds::zero();
  /// By worker address. UCX watches every other connection: `undetected` is an error there.
  peer_failure failure = peer_failure::automatic;
  /// By socket address. By name, `none` is an error: to look a name up takes time, which
  /// `connection_manager` does not wait for.
  connect_wait wait = connect_wait::for_peer;
  /// By socket address, and by name: the address of this machine to connect from, where it is not
  /// empty. Port 0: any. An error elsewhere.
  socket_address local = {};
  /// Without them, those of the listener count, else those of the worker.
  std::optional<connection_terms> terms = {};
  /// By worker address: another connection to the same process, of any worker, that UCX watches:
  /// when it is lost, or the peer closes it, this one fails for the same reason. For
  /// `peer_failure::undetected`, where the system does not tell of the process's end
  /// (`connection_report::watched`). An error elsewhere: UCX watches those.
  /// It has to be driven like everything else, and stays open as long as this one.
  const endpoint* watched_by = nullptr;
  /// Called from progress: the peer has answered.
  move_only_handler<const connection_report&> on_established = {};
  /// Called from progress: the connection did not come to be. A constructor that fails, or waits
  /// for the peer, tells nobody but its caller.
  move_only_handler<const connection_refusal&> on_refused = {};
  /// Called from progress: a connection that was established is lost, or was closed by the peer;
  /// not when it is closed on this side.
  /// Lifetime: of all three until `close()` or the endpoint's destructor returns.
  move_only_handler<const connection_end&> on_closed = {};
};

}  // namespace ucx
