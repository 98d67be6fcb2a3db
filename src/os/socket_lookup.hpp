// Asks the system which TCP socket is one end of a connection, or listens, by addresses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// A TCP socket that listens.
struct listening_facts {
  std::uint64_t file = 0;  ///< Its number as a file (`st_ino`), which no other socket has now.
  ::uid_t user = 0;        ///< The user that made it.
};

/// Takes as long whatever the number of sockets, where a search among the descriptors of a process
/// looks at each. Not every system tells. Never waits.
/// REQUIRES: external synchronization.
class socket_lookup {
 public:
  /// Of the sockets in the network namespace where the calling thread is now.
  socket_lookup() noexcept;
  /// Of a system that tells nothing.
  static socket_lookup of_nothing() noexcept { return socket_lookup(owned_descriptor()); }

  /// Returns the number (SO_COOKIE) of the socket at `local` that is connected to `peer`. Returns 0
  /// where none is found: it may be gone, or bound to a device, or the system does not tell.
  std::uint64_t find(const socket_address& local, const socket_address& peer) noexcept;
  /// Returns the socket that takes connections to `local` in this network namespace. Returns
  /// nothing where none does, or the system does not tell.
  std::optional<listening_facts> find_listener(const socket_address& local) noexcept;
  /// Returns how many bytes have come to the one that was found last; 0 where that is not told.
  std::uint64_t received() const noexcept { return received_; }

 private:
  explicit socket_lookup(owned_descriptor asked) noexcept : system_(std::move(asked)) {}
  struct answer;
  bool ask(const socket_address& local, const socket_address& peer, answer& told) noexcept;

  owned_descriptor system_;
  std::uint32_t questions_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace ucx::detail
