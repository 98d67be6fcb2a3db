// Whether the user at the other end of a Unix socket is trusted, and what the log tells of others.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "base/log_first_n.hpp"
#include "base/logger.hpp"
#include "os/unix_peer.hpp"

namespace ucx::detail {

/// Safe from any thread: the workers of a context share it.
class unix_trust {
 public:
  /// REQUIRES: the log outlives this.
  unix_trust(trusted_peers trusted, logger* log) noexcept
      : trusted_(std::move(trusted)), log_(log) {}

  /// Returns the user that the connected socket leads to, if that is a trusted one. The log tells
  /// of each user once that is not.
  std::optional<unix_peer> peer_of(int socket, const char* what_others_get) noexcept;
  /// Returns the mode of a socket's file: the system lets other users connect only where some are
  /// trusted.
  ::mode_t file_mode() const noexcept { return trusted_.has_others() ? 0666 : 0600; }

 private:
  const trusted_peers trusted_;
  logger* const log_;
  std::mutex mutex_;
  log_first_n told_;
};

}  // namespace ucx::detail
