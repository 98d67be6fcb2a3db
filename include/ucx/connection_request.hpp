#pragma once

#include <memory>
#include <string_view>

#include "ucx/error.hpp"
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
  /// Returns the address that the peer knocked at: the listener's.
  const socket_address& local() const noexcept;

  /// Refuses: the peer gets `errc::connection_refused`.
  void reject() noexcept;

  /// Refuses and tells the peer why: it gets `why`, and `words` in the text of its error, of which
  /// 256 bytes are told. What only the peer itself can find out (`timed_out`, `connection_reset`,
  /// `unreachable`, `host_not_found`, `canceled`, `closed`, `closed_by_peer`) it gets as
  /// `connection_refused`. No more than 64 peers of a listener are told so at a time, for as long
  /// as `connect_timeout`: others, and those on a context without `feature::am`, get
  /// `connection_refused` alone.
  void reject(errc why, std::string_view words = {});

 private:
  friend struct detail::core_access;
  explicit connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept;

  std::unique_ptr<detail::pending_connection> pending_;
};

}  // namespace ucx
