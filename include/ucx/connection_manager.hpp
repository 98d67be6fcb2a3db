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
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class connection_manager_core;
}

#if UCXIO_OLD_NAMES
using peer_location [[deprecated("peer_address")]] = peer_address;
#endif

/// The times at which a failed connection is made again. The n-th attempt in a row waits for
/// `first_delay * factor^(n-1)`, `max_delay` at most. `jitter` makes the delay longer or
/// shorter at random. A connection that is lost sooner than it was waited for counts as an attempt
/// that failed.
struct reconnect_options {
  std::chrono::nanoseconds first_delay = std::chrono::milliseconds(100);
  /// For one version: `max_delay`.
  detail::old_option<std::chrono::nanoseconds> longest_delay = {};
  std::chrono::nanoseconds max_delay = longest_delay.value_or(std::chrono::seconds(30));
  double factor = 2;
  /// The largest share by which a delay is made longer or shorter: 0 to 1.
  double jitter = 0.25;
  /// For one version: `max_attempts`.
  detail::old_option<unsigned> most_attempts = {};
  /// The number of attempts in a row that may fail after the first one; then the peer stays failed.
  unsigned max_attempts = most_attempts.value_or(10);
};

/// A peer of a manager.
struct managed_peer {
  std::string name = {};
  /// `failed` where no further attempt is made; `connecting` also between two attempts.
  connection_state state = connection_state::connecting;
  std::error_code failure = {};    ///< The error of the last attempt or connection that failed.
  std::string error_message = {};  ///< The text of that error.
  unsigned attempts = 0;           ///< The attempts that failed in a row.
};

struct connection_manager_options {
  /// For each attempt. Zero means the worker's `connect_timeout`.
  std::chrono::nanoseconds connect_timeout = std::chrono::nanoseconds::zero();
  /// For each connection. Without them the worker's terms count.
  std::optional<connection_terms> terms = {};
  /// For one version: `error_handling`.
  detail::old_option<error_handling_mode> failure = {};
  /// `none` is for peers that are known by their worker's address.
  error_handling_mode error_handling = failure.value_or(error_handling_mode::automatic);
  /// The address of this machine to connect from, where it is not empty. It is for peers that are
  /// known by a socket address or a host's name. Port 0 is any port. Another port works for one
  /// peer at a time.
  socket_address local = {};
  reconnect_options reconnect = {};
  /// For one version: `max_peers`.
  detail::old_option<std::size_t> most_peers = {};
  /// More peers than this are refused (`busy`).
  std::size_t max_peers = most_peers.value_or(4096);
  /// Asked before every attempt whether to make it, also before the first one and after
  /// `reconnect()`. If not, the peer stays failed, with the earlier failure or `canceled`. Without
  /// this function, `reconnect` alone decides. It is not asked about a peer that was closed
  /// meanwhile. Called from progress, as a handler.
  std::function<bool(const managed_peer& peer)> on_attempt = {};
  /// Told of each change of a peer's state. A peer that is closed with `close_mode::flush` becomes
  /// `closing`, and then `closed` when the manager forgets it. A peer that is closed at once is not
  /// reported. Called from progress, as a handler.
  std::function<void(const managed_peer& peer)> on_change = {};
};

/// Keeps connections to many peers, each with a name that the caller chooses. Makes a connection
/// again that was lost, or closed by the peer. A connection that `endpoint::close()` closes on this
/// side counts as lost. A connection that is closed through the manager is not made again.
/// Threads: as the worker's.
class UCXIO_EXPORT connection_manager {
 public:
  /// Makes a manager without peers.
  /// Errors: closed (`parent`); invalid_argument (`reconnect` makes no sense, or terms);
  /// feature_disabled (terms).
  explicit connection_manager(const worker& parent, connection_manager_options options = {},
                              std::error_code& ec = throws);
  connection_manager(connection_manager&& other) noexcept;
  connection_manager& operator=(connection_manager&& other) noexcept;
  /// Closes every connection at once, like `close(close_mode::abort)`.
  ~connection_manager();

  /// Adds a peer, and begins to connect. Returns at once: `on_change` and `wait_active()` tell the
  /// outcome.
  /// Errors: already_exists (the name), busy (`max_peers`), bad_name (empty), closed;
  /// invalid_argument (the option `error_handling` is not for this peer).
  void add(std::string_view name, peer_address where, std::error_code& ec = throws);

  /// Waits until the peer's connection is active, and returns it.
  /// Errors: no_such_name; that of the last attempt, where no further one is made; closed (it is
  /// being closed); timed_out; would_deadlock inside a completion callback.
  endpoint wait_active(std::string_view name, const io_options& options = {},
                       std::error_code& ec = throws);

  /// Returns the peer's connection, or an empty one unless it is active. The handle is shared:
  /// dropping it changes nothing.
  endpoint find(std::string_view name) const;
  /// Returns the state of a peer; nothing if there is none of this name.
  std::optional<managed_peer> status(std::string_view name) const;
  /// Returns all peers, by name.
  std::vector<managed_peer> peers() const;

  /// Tries again now, as if no attempt had failed. A peer that was given up is tried, too. Does
  /// nothing where the connection is active.
  /// Errors: no_such_name, closed (also a peer that is being closed).
  void reconnect(std::string_view name, std::error_code& ec = throws);

  /// Closes one peer's connection and forgets the peer. Without a name, closes all of them
  /// together; after that the manager takes no new peers. Returns within `close_timeout`, however
  /// many there are, because they flush at the same time. Until then each peer is `closing`: its
  /// name is taken, and `wait_active()` says `closed`. Inside a completion callback the peers are
  /// closed at once, whatever `mode` says. An unknown name is no error. A manager has no
  /// `start_close`. A caller that may not wait calls this on another thread, if the worker allows
  /// that, or aborts.
  void close(std::string_view name, close_mode mode) noexcept;
  void close(close_mode mode = close_mode::flush) noexcept;

#if UCXIO_OLD_NAMES
  [[deprecated("the error code comes last")]] endpoint wait_active(std::string_view name,
                                                                   std::error_code& ec,
                                                                   const io_options& options = {}) {
    return wait_active(name, options, ec);
  }
  [[deprecated("count in peers()")]] std::size_t count(connection_state state) const {
    std::size_t found = 0;
    for (const managed_peer& each : peers()) found += each.state == state ? 1 : 0;
    return found;
  }
  [[deprecated("use peers().size()")]] std::size_t count() const { return peers().size(); }
#endif

 private:
  std::shared_ptr<detail::connection_manager_core> core_;
};

}  // namespace ucx
