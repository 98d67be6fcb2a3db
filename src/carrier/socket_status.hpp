// Errors of sockets as UCX's statuses.
#pragma once

#include <ucp/api/ucp.h>

#include <cerrno>
#include <cstdint>

#include "carrier/carrier_failure.hpp"

namespace ucx::detail {

inline ucs_status_t socket_status(int number) noexcept {
  switch (number) {
    case ECONNREFUSED:
    case ENOENT:  // of a Unix socket
    case ENOTDIR:
      return UCS_ERR_REJECTED;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENOTCONN:
      return UCS_ERR_CONNECTION_RESET;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
      return UCS_ERR_UNREACHABLE;
    case ETIMEDOUT:
      return UCS_ERR_TIMED_OUT;
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return UCS_ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE:
      return UCS_ERR_EXCEEDS_LIMIT;
    case EACCES:
    case EPERM:
      return status_user_refused;
    case EADDRINUSE:
      return UCS_ERR_BUSY;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return UCS_ERR_INVALID_ADDR;
    default:
      return UCS_ERR_IO_ERROR;
  }
}

/// A status where UCX returns a request.
inline ucs_status_ptr_t as_pointer(ucs_status_t status) noexcept {
  return reinterpret_cast<ucs_status_ptr_t>(static_cast<std::intptr_t>(status));
}

}  // namespace ucx::detail
