#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/connection_terms.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

namespace detail {
class connection_manager_core;
}

/// Where a peer is to be found.
class peer_location {
 public:
  peer_location(socket_address address)  // NOLINT(google-explicit-constructor): it is one
      : address_(address) {}
  peer_location(worker_address address)  // NOLINT(google-explicit-constructor): it is one
      : worker_(std::move(address)) {}
  /// Looked up anew at each attempt.
  peer_location(std::string_view host, std::uint16_t port) : host_(host), port_(port) {}

  const socket_address& address() const noexcept { return address_; }
  const worker_address& worker() const noexcept { return worker_; }
  const std::string& host() const noexcept { return host_; }
  std::uint16_t port() const noexcept { return port_; }

 private:
  socket_address address_;
  worker_address worker_;
  std::string host_;
  std::uint16_t port_ = 0;
};

/// When a connection that failed is made again. The n-th attempt in a row waits for
/// `first_delay * factor^(n-1)`, `longest_delay` at most, made longer or shorter at random. A
/// connection that is lost sooner than it was waited for counts as an attempt that failed.
struct reconnect_options {
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  std::chrono::nanoseconds longest_delay = std::chrono::seconds(30);
  double factor = 2;
  /// By which share of itself a delay is made longer or shorter at most: 0 to 1.
  double jitter = 0.25;
  /// So many attempts in a row may fail behind the first one; then the peer stays failed.
  unsigned most_attempts = 10;
};

/// A peer of a manager.
struct managed_peer {
  std::string name = {};
  /// `failed` where nothing is tried any more; `connecting` also between two attempts.
  connection_state state = connection_state::connecting;
  std::error_code failure = {};  ///< Of the last attempt or connection that failed.
  std::string words = {};        ///< What is known about it.
  unsigned attempts = 0;         ///< That failed in a row.
};

struct connection_manager_options {
  /// For each attempt; zero means the worker's `connect_timeout`.
  std::chrono::nanoseconds connect_timeout = std::chrono::nanoseconds::zero();
  /// For each connection; without them the worker's count.
  std::optional<connection_terms> terms = {};
  /// `undetected` is for peers that are known by their worker's address.
  peer_failure failure = peer_failure::automatic;
  /// The address of this machine to connect from, where it is not empty, for peers that are known
  /// by a socket address or a host's name. Port 0: any; another one is for one peer at a time.
  socket_address local = {};
  reconnect_options reconnect = {};
  /// More peers than this are refused (`busy`).
  std::size_t most_peers = 4096;
  /// Asked before every attempt, a peer's first and `reconnect()` included: whether to go on. If
  /// not, the peer stays failed: for what has failed before, else `canceled`. Without it,
  /// `reconnect` alone decides. Not asked about a peer that was closed meanwhile.
  /// Called from progress, as a handler.
  std::function<bool(const managed_peer& peer)> on_attempt = {};
  /// Told of each change of a peer's state. A peer that is closed with `close_mode::flush` is
  /// `closing` first, and `closed` when it is forgotten; one that is closed at once is not told of.
  /// Called from progress, as a handler.
  std::function<void(const managed_peer& peer)> on_change = {};
};

/// Keeps connections to many peers, each known by a name of the caller's, and makes those again
/// that were lost or closed by the peer. A connection that is closed on this side by `endpoint::
/// close()` counts as lost; one that is closed through the manager is not made again.
/// Threads: as the worker's.
class UCXIO_EXPORT connection_manager {
 public:
  /// Errors: closed (`parent`); invalid_argument (`reconnect` makes no sense, or terms);
  /// feature_disabled (terms).
  explicit connection_manager(const worker& parent, connection_manager_options options = {});
  connection_manager(const worker& parent, connection_manager_options options, std::error_code& ec);
  connection_manager(connection_manager&& other) noexcept;
  connection_manager& operator=(connection_manager&& other) noexcept;
  /// Closes every connection at once, as `close(close_mode::abort)`.
  ~connection_manager();

  /// Adds a peer, and begins to connect. Returns at once: `on_change` and `wait_active()` tell.
  /// Errors: already_exists (the name), busy (`most_peers`), bad_name (empty), closed;
  /// invalid_argument (the option `failure` is not for this peer).
  void add(std::string_view name, peer_location where);
  void add(std::string_view name, peer_location where, std::error_code& ec);

  /// Waits until the peer's connection is active, and returns it. Errors: no_such_name; why it
  /// failed, where nothing is tried any more; closed (it is being closed); timed_out;
  /// would_deadlock inside a completion callback.
  endpoint wait_active(std::string_view name, const io_options& options = {});
  endpoint wait_active(std::string_view name, std::error_code& ec, const io_options& options = {});

  /// Returns the peer's connection: empty unless it is active. The handle shares it: dropping it
  /// changes nothing.
  endpoint find(std::string_view name) const;
  /// Returns what is known of a peer; nothing if there is none of this name.
  std::optional<managed_peer> status(std::string_view name) const;
  /// Returns all peers, by name.
  std::vector<managed_peer> peers() const;
  /// Returns how many peers are in a state, or in any.
  std::size_t count(connection_state state) const noexcept;
  std::size_t count() const noexcept;

  /// Tries again now, as if nothing had failed yet: also a peer that was given up. Does nothing
  /// where the connection is active.    Errors: no_such_name, closed (also a peer that is being
  /// closed).
  void reconnect(std::string_view name);
  void reconnect(std::string_view name, std::error_code& ec);

  /// Closes a peer's connection and forgets the peer, or does so with all of them, together; then
  /// the manager takes no new ones. Returns within `close_timeout`, however many there are: they
  /// flush at the same time. Until then each is a peer still, and `closing`: its name is taken, and
  /// `wait_active()` says `closed`. Inside a completion callback they are closed at once, whatever
  /// `mode` says. A name that is not there is no error. There is no `start_close` of a manager: who
  /// may not wait calls this on another thread, where the worker may be used from any, or aborts.
  void close(std::string_view name, close_mode mode) noexcept;
  void close(close_mode mode = close_mode::flush) noexcept;

 private:
  std::shared_ptr<detail::connection_manager_core> core_;
};

}  // namespace ucx
