#pragma once

#include <memory>

#include "ucx/export.hpp"
#include "ucx/socket_address.hpp"

namespace ucx {

namespace detail {
class pending_connection;
struct core_access;
}  // namespace detail

/// A peer that wants to connect, as a listener's handler gets it. Make an `endpoint` of it to
/// accept; `reject()` or drop it to refuse.
class [[nodiscard]] UCXIO_EXPORT connection_request {
 public:
  connection_request(connection_request&& other) noexcept;
  connection_request& operator=(connection_request&& other) noexcept;
  /// Rejects, unless it was accepted or rejected.
  ~connection_request();

  /// Returns the peer's address.
  const socket_address& peer() const noexcept;

  /// Refuses: the peer gets `errc::connection_refused`.
  void reject() noexcept;

 private:
  friend struct detail::core_access;
  explicit connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept;

  std::unique_ptr<detail::pending_connection> pending_;
};

}  // namespace ucx
