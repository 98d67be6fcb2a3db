#include "ucp/status.hpp"

#include <cerrno>

#include "base/forked_child.hpp"

namespace ucx::detail {

errc to_errc(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_ERR_IO_ERROR:
      return errc::io_error;
    case UCS_ERR_NO_MEMORY:
      return errc::no_memory;
    case UCS_ERR_INVALID_PARAM:
      return errc::invalid_argument;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NO_DEVICE:
      return errc::unreachable;
    case UCS_ERR_INVALID_ADDR:
      return errc::bad_address;
    case UCS_ERR_NOT_IMPLEMENTED:
      return errc::not_supported;
    case UCS_ERR_UNSUPPORTED:  // the word of the seam there, too
      return is_forked_child() ? errc::forked_child : errc::not_supported;
    case UCS_ERR_MESSAGE_TRUNCATED:
    case UCS_ERR_BUFFER_TOO_SMALL:
      return errc::message_truncated;
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_NO_PROGRESS:
    case UCS_ERR_BUSY:
      return errc::busy;
    case UCS_ERR_CANCELED:
      return errc::canceled;
    case UCS_ERR_SHMEM_SEGMENT:
      return errc::no_shared_memory;
    case UCS_ERR_OUT_OF_RANGE:
      return errc::out_of_range;
    case UCS_ERR_TIMED_OUT:
      return errc::timed_out;
    case UCS_ERR_EXCEEDS_LIMIT:
      return errc::too_many_files;
    case UCS_ERR_REJECTED:
      return errc::connection_refused;
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_SOME_CONNECTS_FAILED:
      return errc::connection_reset;
    default:
      break;
  }
  // Links and endpoints fail in numbered ways that UCX reserves ranges for.
  const bool link = status <= UCS_ERR_FIRST_LINK_FAILURE && status >= UCS_ERR_LAST_LINK_FAILURE;
  const bool endpoint =
      status <= UCS_ERR_FIRST_ENDPOINT_FAILURE && status >= UCS_ERR_LAST_ENDPOINT_FAILURE;
  return link || endpoint ? errc::connection_reset : errc::unexpected;
}

std::error_code make_error(ucs_status_t status) noexcept {
  if (status == UCS_OK || status == UCS_INPROGRESS) return {};
  return to_errc(status);
}

errc to_loss(ucs_status_t status, connection_stage stage) noexcept {
  const errc why = to_errc(status);
  switch (why) {
    case errc::connection_reset:
      return stage == connection_stage::dialing ? errc::connection_refused : why;
    case errc::timed_out:  // later it would be taken for the deadline of an operation
      return stage == connection_stage::standing ? errc::connection_reset : why;
    case errc::canceled:
    case errc::io_error:
    case errc::unexpected:
      return errc::connection_reset;
    default:
      return why;
  }
}

std::string words(ucs_status_t status) { return ucs_status_string(status); }

const char* thread_mode_name(ucs_thread_mode_t mode) noexcept {
  if (mode == UCS_THREAD_MODE_SINGLE) return "single";
  return mode == UCS_THREAD_MODE_SERIALIZED ? "serialized" : "multi";
}

errc from_errno(int number) noexcept {
  switch (number) {
    case EINVAL:
      return errc::invalid_argument;
    case EAFNOSUPPORT:
      return errc::bad_address;
    case EACCES:
    case EPERM:
      return errc::permission_denied;
    case ENOMEM:
    case ENOBUFS:
      return errc::no_memory;
    case ENOSPC:
      return errc::no_space;
    case EMFILE:
    case ENFILE:
      return errc::too_many_files;
    case EAGAIN:
    case EBUSY:
    case EINTR:
      return errc::busy;
    case EADDRINUSE:
      return errc::address_in_use;
    case EADDRNOTAVAIL:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENODEV:
      return errc::unreachable;
    case ECONNREFUSED:
      return errc::connection_refused;
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
      return errc::connection_reset;
    case ETIMEDOUT:
      return errc::timed_out;
    case ECANCELED:
      return errc::canceled;
    case EBADF:
      return errc::closed;
    case EDEADLK:
      return errc::would_deadlock;
    case EMSGSIZE:
      return errc::message_truncated;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
      return errc::not_supported;
    case EPROTO:
      return errc::protocol_error;
    default:
      return errc::io_error;
  }
}

}  // namespace ucx::detail
