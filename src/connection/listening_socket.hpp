// The socket that a listener of UCX's over TCP listens by, and those that it accepted. UCX keeps
// them to itself; here they are found among the descriptors of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "connection/port_guard.hpp"
#include "os/socket_lookup.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// A thread of UCX's reads a peer's request. It then follows a pointer to the listener, also to one
/// that was destroyed meanwhile (1.13.1 to 1.22). So a listener has to stay until no request is on
/// its way. REQUIRES: external synchronization.
class listening_socket {
 public:
  /// Of what is about to listen at `address`: who is connected there already came to somebody else,
  /// and is left alone. REQUIRES: `lookup` is of the network namespace where it listens.
  explicit listening_socket(const socket_address& address, socket_lookup lookup = socket_lookup());

  /// It listens; the system has chosen the port, where the caller has not.
  void listens_at(const socket_address& address) noexcept { address_ = address; }
  /// Keeps it from the programs that this process starts, which would keep the address.
  void close_on_exec() noexcept;

  /// Has the system keep away from UCX what does not begin as its peers do (`greeting_filter`),
  /// where it can. Returns what there is to guard: nothing, where UCX listens over InfiniBand.
  std::vector<guarded_port> keep_strangers_out() noexcept;

  /// The request of this peer has come. Returns false where so little has come that it is none: a
  /// header that announces nothing, which the system lets through. A peer that is gone by now may
  /// have sent no more than that. It counts as none, too, where every peer comes by a socket.
  bool add_known(const socket_address& peer) noexcept;

  /// Has the system leave unanswered who comes from now on; where it can not, they are let in.
  void refuse() noexcept;
  /// Returns whether somebody waits to be let in.
  bool has_waiting() const noexcept;
  /// Ends the connections of those whose request has not come, and returns how many there are: they
  /// are gone when UCX has noticed.
  std::size_t end_unknown() noexcept;
  /// Ends those among `numbers` (`tcp_socket::number`) whose request has not come.
  void end_unknown(std::span<const std::uint64_t> numbers) noexcept;

 private:
  bool listens(int descriptor) const noexcept;
  bool is_accepted(int descriptor) const noexcept;
  struct accepted {
    bool is_there = false;
    std::uint64_t number = 0;    // 0: not known
    std::uint64_t received = 0;  // bytes; 0: not known
  };
  accepted accepted_from(const socket_address& peer, bool& all_seen);
  void forget_gone();

  socket_address address_;
  socket_lookup lookup_;
  /// Sockets that are left alone, by the number that the system gives each but once. An address may
  /// be that of the peer's next connection, of which nothing has come.
  std::unordered_set<std::uint64_t> known_;
  /// Nothing but TCP: who comes over InfiniBand has no socket.
  bool all_come_by_sockets_ = false;
  bool all_are_known_ = true;     // `known_` lacks none; else `end_unknown()` ends none
  std::size_t most_known_ = 256;  // until those that are gone are looked for
};

}  // namespace ucx::detail
