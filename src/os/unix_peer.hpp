// The user at the other end of a Unix socket, as the system knows it, and which users are trusted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucx::detail {

/// The peer at the moment when it connected, or began to listen. It can not say otherwise.
struct unix_peer {
  ::uid_t user = 0;
  ::gid_t group = 0;
  ::pid_t process = 0;
  std::vector<::gid_t> groups = {};  ///< The supplementary ones.

  /// Returns nothing where the system does not tell.
  static std::optional<unix_peer> of(int socket);
  /// Returns "user 1000, process 4711".
  std::string words() const;
};

/// Returns the number that stands for every user of another user namespace.
::uid_t overflow_user() noexcept;

/// The users that a process lets in, or whose servers it believes.
struct trusted_peers {
  std::vector<std::uint32_t> users = {};
  std::vector<std::uint32_t> groups = {};

  /// Returns whether there are others than this user and root.
  bool has_others() const noexcept { return !users.empty() || !groups.empty(); }
  /// Says what is wrong with the list; empty where nothing is. The overflow user and group stand
  /// for anybody.
  std::string complaint() const;
  /// Returns whether the peer is this user, root or one of those. The overflow user is none of
  /// them, even if this process is its own.
  bool trusts(const unix_peer& peer) const noexcept;
};

}  // namespace ucx::detail
