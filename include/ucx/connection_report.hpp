// The facts of a connection: the terms, the report, the end.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/context.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

class endpoint;

/// The state of a connection.
enum class connection_state {
  connecting,  ///< The peer has not answered yet. Operations wait.
  active,      ///< Both sides agreed. Operations go out.
  closing,     ///< `close()` was called on this side, and has not ended.
  failed,      ///< The connection was lost, refused, or closed by the peer.
  closed,      ///< Closed on this side, or there is no connection.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(connection_state value) noexcept;

/// The abilities of a connection, as both sides told each other when it was made.
struct connection_report {
  /// The number of the connection at its worker. Every report of one connection has the same
  /// number.
  std::uint64_t id = 0;
  socket_address peer = {};                  ///< Empty for a connection by worker address.
  socket_address local = {};                 ///< Empty for a connection by worker address.
  std::string peer_name = {};                ///< `worker_options::name` of the peer.
  std::vector<std::byte> peer_info = {};     ///< `connection_terms::info` of the peer.
  feature features = feature::none;          ///< The features that both contexts have.
  std::vector<std::string> transports = {};  ///< "transport/device" of each lane.
  union {
    std::size_t segment_size = 0;  ///< Bytes that the transport carries in one piece.
#if UCXIO_OLD_NAMES
    [[deprecated("segment_size")]] std::size_t segment;
#endif
  };
  union {
    /// The longest message, with its header, that is sent at once while the peer's whole room is
    /// free. A longer message is announced first (docs/reference/messages.md, "Completion").
    std::size_t max_eager_size = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("max_eager_size")]] std::size_t largest_eager;
#endif
  };
  union {
    /// The longest header of an active message that both sides can send.
    std::size_t max_header_size = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("max_header_size")]] std::size_t largest_header;
#endif
  };
  bool zero_copy = false;  ///< Hardware sends the bytes in place: UCX does not copy them.
  union {
    /// Hardware that reads and writes memory ("rc" or "dc", not "ud"), or this process itself in
    /// shareable memory, moves the bytes of regions. The peer's CPU does not work.
    bool native_rma = false;
#if UCXIO_OLD_NAMES
    [[deprecated("native_rma")]] bool rma_is_real;
#endif
  };
  std::string why_not_rma = {};  ///< Why `native_rma` is not set; empty where it is.
  /// How long messages of this side go (docs/reference/messages.md, "Completion"): `rma` or `cma`
  /// where the receiver may read them in place, else `message`, in pieces.
  transfer_method long_messages = transfer_method::message;
  bool watched = false;    ///< The end of the peer's process is noticed at once.
  bool encrypted = false;  ///< By TLS.
  /// The peer that has connected, at the side that was connected to. The other side knows what that
  /// makes of it only by asking (`client::identity()`).
  peer_identity identity = {};
};

/// The loss of a port by which peers, or their data, come to a listener.
struct listener_failure {
  socket_address port = {};
  std::error_code reason = {};  ///< too_many_files
  std::string error_message = {};
};

/// The end of a connection that was active, or the reason why one was not made.
struct connection_end {
  std::uint64_t id = 0;
  socket_address peer = {};
  /// `closed_by_peer` where the peer said goodbye; otherwise connection_reset, protocol_error, ...
  /// Of a connection that was not made: the peer's reason, or connection_refused, unreachable,
  /// timed_out, ...
  std::error_code reason = {};
  std::string error_message = {};  ///< The peer's own text, or UCX's.
  /// The keys of the posts that had not ended by then, in the order of the posts. Their messages
  /// were not sent, or not surely. `message_handlers::on_sent` gets each of them, too.
  std::vector<std::uint64_t> unsent = {};
  std::optional<int> ucx_status = {};  ///< See `ucx::error::ucx_status()`.
};

/// Handlers that tell of connections, called from progress. `endpoint_options`, `listener_options`
/// and `worker::set_connection_events` say of which connections.
struct connection_events {
  /// Called when both sides have agreed. `peer` is another handle of the connection, or empty where
  /// the peer has left already. To drop it changes nothing. To keep it keeps the connection and the
  /// worker.
  move_only_handler<endpoint /*peer*/, const connection_report&> on_established = {};
  /// Called when a connection was not made: the terms were not met, or the peer left before, or did
  /// not answer in time. Not called when this side gave the connection up.
  move_only_handler<const connection_end&> on_refused = {};
  /// Called when an established connection is lost, or the peer closes it; not when this side does.
  move_only_handler<const connection_end&> on_closed = {};
};

#if UCXIO_OLD_NAMES
using connection_refusal [[deprecated("connection_end")]] = connection_end;
#endif

namespace detail {
/// A handler that `connection_events` has now. As an option it stays for one version.
template <class Handler>
struct old_handler {
  old_handler() noexcept = default;
#if UCXIO_OLD_NAMES
  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, old_handler> &&
           std::constructible_from<Handler, Function>)
      [[deprecated("connection_events")]] old_handler(
          Function&& function)  // NOLINT(google-explicit-constructor): as std::function
      : handler(std::forward<Function>(function)) {}
#endif
  Handler handler;
};
}  // namespace detail

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
