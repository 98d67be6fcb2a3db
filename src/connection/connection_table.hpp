// Every connection of a worker: found by session, and watched.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "connection/connection_messages.hpp"
#include "connection/deferred_connections.hpp"
#include "connection/served_peers.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class connection_observer;
class control_queue;
class endpoint_core;
class operation;
class worker_core;

class connection_table {
 public:
  using connections = std::vector<std::shared_ptr<endpoint_core>>;
  using maker_of_messages = std::unique_ptr<connection_messages> (*)(endpoint_core& of);

  connection_table(worker_core& worker, maker_of_messages messages);
  ~connection_table();
  connection_table(const connection_table&) = delete;
  connection_table& operator=(const connection_table&) = delete;

  /// Makes the messages' side of a connection.
  std::unique_ptr<connection_messages> make_messages(endpoint_core& of) const {
    return make_messages_(of);
  }
  void make_room();  ///< For one more: adding it takes no memory.
  void add(endpoint_core& made) noexcept { all_.push_back(&made); }
  void remove(endpoint_core& gone) noexcept;
  /// Has the clock of one looked at that was just removed: the room that it had is there still.
  void remember(endpoint_core& left) noexcept { all_.push_back(&left); }
  /// The endpoint got its session.
  void name(endpoint_core& named);
  void unname(endpoint_core& named) noexcept;

  /// Returns the connection of a session. Over sockets there is none: see `find_over`.
  endpoint_core* find(std::uint64_t session) const noexcept;
  /// Returns the connection that has a session, over a socket: `over` is what it came by.
  endpoint_core* find_over(ucp_ep_h over) const noexcept;
  /// Returns the connection over UCX's `handle`, as long as it has no session.
  endpoint_core* find_nameless(ucp_ep_h handle) const noexcept;
  std::size_t size() const noexcept { return all_.size(); }
  /// Returns those that somebody here made: they may have started something. REQUIRES: who gets
  /// them lets them go without the lock, for the last share of one closes it.
  connections made_here() const;
  /// Numbers the connections from 1.
  std::uint64_t next_number() noexcept { return ++last_number_; }
  /// Returns a connection that `observer` follows and that is not closed; nothing where none is.
  std::shared_ptr<endpoint_core> any_followed_by(
      const connection_observer& observer) const noexcept;
  /// Returns the connections that `observer` follows.
  std::vector<std::shared_ptr<endpoint_core>> followed_by(
      const connection_observer& observer) const;
  /// Returns whether there is a connection to `peer`, active or on the way, made from here.
  bool has_connection_to(const socket_address& peer) const noexcept;
  /// Returns whether there is another active connection than `but` to the worker `identity`, which
  /// `but` has to give way to.
  bool has_connection_to(std::uint64_t identity, const endpoint_core& but) const noexcept;
  /// Returns how many connections are active; of those that `observer` follows, if there is one.
  std::size_t active(const connection_observer* observer = nullptr) const noexcept;

  /// The control messages of those who connected.
  control_queue& turns() noexcept { return *turns_; }

  /// Those that peers have opened.
  served_peers& served() noexcept { return served_; }
  /// Those that rounds have to see to.
  deferred_connections& deferred() noexcept { return deferred_; }

  /// Notes that UCX has closed a socket that listened, which several listeners may look after.
  /// Returns whether that is new.
  bool note_lost_port(std::uint64_t socket);

  /// Looks at every connection's clock; returns when to look again.
  clock::time_point tick(clock::time_point now);

  /// Starts a flush of each, as one operation. Where memory is short it fails with no_memory.
  operation* start_flush(const connections& over, const io_options& options);
  /// Gives up what is in flight over `connection` (null: over any, and over none) and returns how
  /// much of it is left after `limit`. REQUIRES: the lock is not held.
  std::size_t cancel_all(endpoint_core* connection, std::chrono::nanoseconds limit);

 private:
  worker_core& worker_;
  const maker_of_messages make_messages_;
  const std::unique_ptr<control_queue> turns_;
  std::vector<endpoint_core*> all_;
  std::vector<endpoint_core*> ticking_;  // those that a tick looks at; empty outside of it
  std::unordered_map<std::uint64_t, endpoint_core*> by_session_;
  std::unordered_map<ucp_ep_h, endpoint_core*> by_handle_;  // instead, of sockets
  served_peers served_;
  deferred_connections deferred_;
  std::vector<std::uint64_t> lost_ports_;  // the system's numbers of their sockets
  // Most messages come from where the last one did.
  mutable std::uint64_t last_session_ = 0;
  mutable endpoint_core* last_found_ = nullptr;
  std::uint64_t last_number_ = 0;
};

}  // namespace ucx::detail
