// How far a connection has come.
#pragma once

namespace ucx::detail {

enum class endpoint_state {
  connecting,  ///< Hello was sent, or is awaited.
  ready,       ///< The peer answered; operations go out.
  failed,      ///< The connection is lost; `error()` says why.
  closed,      ///< close() was called here, and is over.
};

/// Returns whether a connection comes from one state to the next:
///
///     from         to       when
///     connecting   ready    the peer answered
///     connecting   failed   it was lost, refused, or its deadline passed
///     connecting   closed   close() is over; UCX made no endpoint, or has made none yet and no
///                           answer of the peer will come (a context without active messages)
///     closed       ready    then UCX made one
///     ready        failed   it was lost
///     ready        closed   close() is over
///     failed       closed   close() is over
constexpr bool may_become(endpoint_state now, endpoint_state next) noexcept {
  switch (next) {
    case endpoint_state::connecting:
      return false;
    case endpoint_state::ready:
      return now == endpoint_state::connecting || now == endpoint_state::closed;
    case endpoint_state::failed:
      return now == endpoint_state::connecting || now == endpoint_state::ready;
    case endpoint_state::closed:
      return now != endpoint_state::closed;
  }
  return false;
}

}  // namespace ucx::detail
