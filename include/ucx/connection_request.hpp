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

/// A peer that wants to connect, as a listener's handler gets it. To accept it, make an `endpoint`
/// of it. To refuse it, call `reject()`, or drop it.
class [[nodiscard]] UCXIO_EXPORT connection_request {
 public:
  connection_request(connection_request&& other) noexcept;
  connection_request& operator=(connection_request&& other) noexcept;
  /// Rejects the peer, unless it was accepted or rejected.
  ~connection_request();

  /// Returns the peer's address.
  const socket_address& peer() const noexcept;
  /// Returns the address that the peer connected to: the listener's.
  const socket_address& local() const noexcept;

  /// Refuses the peer, which gets `errc::connection_refused`.
  void reject() noexcept;

  /// Refuses the peer, and tells it why. The peer gets the error `why`, and the first 256 bytes of
  /// `error_message` in the error's text. Some errors only the peer itself can find out:
  /// `timed_out`, `connection_reset`, `unreachable`, `host_not_found`, `canceled`, `closed` and
  /// `closed_by_peer`. The peer gets those as `connection_refused`. At most 64 peers of a listener
  /// are told a reason at a time, each for as long as `connect_timeout`. Further peers, and peers
  /// on a context without `feature::am`, get `connection_refused` alone.
  void reject(errc why, std::string_view error_message = {});

 private:
  friend struct detail::core_access;
  explicit connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept;

  std::unique_ptr<detail::pending_connection> pending_;
};

}  // namespace ucx
