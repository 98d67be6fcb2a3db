#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/connection_request.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

namespace detail {
class endpoint_core;
}

/// What `close()` does with operations that are in flight.
enum class close_mode {
  flush,  ///< Waits for them, within the worker's `close_timeout`, and says goodbye.
  abort,  ///< Ends them at once; they complete with `errc::canceled`.
};

/// Whether UCX watches the connection (its mode PEER, which excludes shared memory in UCX).
enum class peer_failure {
  automatic,   ///< `detected`, but on a context whose transports are all of one host: `undetected`.
  detected,    ///< UCX reports a closed connection, and our heartbeat a silent peer.
  undetected,  ///< For one-sided operations on one host; another connection watches the peer.
};

/// How an endpoint is made.
struct endpoint_options {
  /// How long connecting may take; zero means the worker's `connect_timeout`.
  std::chrono::nanoseconds connect_timeout = std::chrono::nanoseconds::zero();
  peer_failure failure = peer_failure::automatic;
  /// Called once, from progress, when the connection is lost (not when it is closed on this side):
  /// `connection_reset`, `timed_out`, `connection_refused`, `version_mismatch`, ...
  move_only_handler<std::error_code> on_error = {};
};

/// A connection to one peer. Regions opened over it keep what they need of it alive.
/// Threads: as the worker's.
class UCXIO_EXPORT endpoint {
 public:
  /// Connects by worker address, without any IP address. Returns at once; operations wait for the
  /// connection, `wait_connected()` does so alone.
  /// Errors: unreachable (no transport in common), bad_address, closed.
  endpoint(const worker& parent, const worker_address& peer, endpoint_options options = {});
  endpoint(const worker& parent, const worker_address& peer, endpoint_options options,
           std::error_code& ec);

  /// Connects to a listener, and returns when the peer has answered in our protocol.
  /// Errors: connection_refused, unreachable, timed_out, version_mismatch, too_many_files,
  /// not_supported (IPv6: see listener).
  endpoint(const worker& parent, const socket_address& peer, endpoint_options options = {});
  endpoint(const worker& parent, const socket_address& peer, endpoint_options options,
           std::error_code& ec);

  /// Accepts what a listener's handler was given. Returns at once.
  endpoint(const worker& parent, connection_request&& request, endpoint_options options = {});
  endpoint(const worker& parent, connection_request&& request, endpoint_options options,
           std::error_code& ec);

  endpoint(endpoint&& other) noexcept;
  endpoint& operator=(endpoint&& other) noexcept;
  /// Lets go of the connection. When no handle, region or unfinished request holds it any more, it
  /// is closed with `close_mode::flush`, bounded by `close_timeout`.
  ~endpoint();

  /// Waits until the peer has answered. REQUIRES: a context with `feature::am`, else it is a no-op.
  /// Errors: as the connecting constructor's.
  void wait_connected();
  void wait_connected(std::error_code& ec);

  /// Returns no error while the connection is usable, `closed` after `close()`, else why it failed.
  std::error_code status() const noexcept;

  /// Completes when everything started earlier over this connection, by any region, is visible at
  /// the peer.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {});
  void flush(std::error_code& ec, const io_options& options = {});

  /// Closes. Idempotent: a second call reports nothing. With `flush`, reports the first failure of
  /// what was outstanding, or `timed_out`, after which the connection is dropped all the same.
  /// Inside a completion callback, only `abort` is allowed (`would_deadlock`).
  void close(close_mode mode = close_mode::flush);
  void close(close_mode mode, std::error_code& ec);

  /// Returns the peer's socket address where it is known, else an empty address.
  socket_address peer() const;

  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::endpoint_core> core_;
};

}  // namespace ucx
