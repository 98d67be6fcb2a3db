#include "ucp/status.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include "ucp/forked_ucp.hpp"

namespace ucx::detail {

errc to_errc(ucs_status_t status) noexcept {
  switch (static_cast<int>(status)) {
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
    case UCS_ERR_UNSUPPORTED:
      return errc::not_supported;
    case status_inherited:
      return errc::forked_child;
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

transfer_fate fate_of(ucs_status_t status) noexcept {
  switch (to_errc(status)) {
    case errc::connection_reset:
    case errc::timed_out:
    case errc::canceled:  // by the end of the connection: nothing else cancels a transfer
      return transfer_fate::lost;
    case errc::io_error:
      return transfer_fate::unclear;
    default:
      return transfer_fate::alone;
  }
}

/// Not by `fate_of` and `to_loss`: g++ 14.2 then derives wrong ranges from -O2 on, and returns
/// canceled or timed_out.
std::error_code transfer_error(ucs_status_t status) noexcept {
  if (status == UCS_OK || status == UCS_INPROGRESS) return {};
  switch (const errc why = to_errc(status)) {
    case errc::connection_reset:
    case errc::timed_out:
    case errc::canceled:
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

std::string_view ucx::ucx_status_name(int status) noexcept {
  static constexpr std::pair<int, std::string_view> names[]{
      {UCS_OK, "UCS_OK"},
      {UCS_INPROGRESS, "UCS_INPROGRESS"},
      {UCS_ERR_NO_MESSAGE, "UCS_ERR_NO_MESSAGE"},
      {UCS_ERR_NO_RESOURCE, "UCS_ERR_NO_RESOURCE"},
      {UCS_ERR_IO_ERROR, "UCS_ERR_IO_ERROR"},
      {UCS_ERR_NO_MEMORY, "UCS_ERR_NO_MEMORY"},
      {UCS_ERR_INVALID_PARAM, "UCS_ERR_INVALID_PARAM"},
      {UCS_ERR_UNREACHABLE, "UCS_ERR_UNREACHABLE"},
      {UCS_ERR_INVALID_ADDR, "UCS_ERR_INVALID_ADDR"},
      {UCS_ERR_NOT_IMPLEMENTED, "UCS_ERR_NOT_IMPLEMENTED"},
      {UCS_ERR_MESSAGE_TRUNCATED, "UCS_ERR_MESSAGE_TRUNCATED"},
      {UCS_ERR_NO_PROGRESS, "UCS_ERR_NO_PROGRESS"},
      {UCS_ERR_BUFFER_TOO_SMALL, "UCS_ERR_BUFFER_TOO_SMALL"},
      {UCS_ERR_NO_ELEM, "UCS_ERR_NO_ELEM"},
      {UCS_ERR_SOME_CONNECTS_FAILED, "UCS_ERR_SOME_CONNECTS_FAILED"},
      {UCS_ERR_NO_DEVICE, "UCS_ERR_NO_DEVICE"},
      {UCS_ERR_BUSY, "UCS_ERR_BUSY"},
      {UCS_ERR_CANCELED, "UCS_ERR_CANCELED"},
      {UCS_ERR_SHMEM_SEGMENT, "UCS_ERR_SHMEM_SEGMENT"},
      {UCS_ERR_ALREADY_EXISTS, "UCS_ERR_ALREADY_EXISTS"},
      {UCS_ERR_OUT_OF_RANGE, "UCS_ERR_OUT_OF_RANGE"},
      {UCS_ERR_TIMED_OUT, "UCS_ERR_TIMED_OUT"},
      {UCS_ERR_EXCEEDS_LIMIT, "UCS_ERR_EXCEEDS_LIMIT"},
      {UCS_ERR_UNSUPPORTED, "UCS_ERR_UNSUPPORTED"},
      {UCS_ERR_REJECTED, "UCS_ERR_REJECTED"},
      {UCS_ERR_NOT_CONNECTED, "UCS_ERR_NOT_CONNECTED"},
      {UCS_ERR_CONNECTION_RESET, "UCS_ERR_CONNECTION_RESET"},
      {UCS_ERR_ENDPOINT_TIMEOUT, "UCS_ERR_ENDPOINT_TIMEOUT"},
  };
  for (const auto& [number, name] : names) {
    if (number == status) return name;
  }
  if (UCS_IS_LINK_ERROR(status)) return "UCS_ERR_LINK_FAILURE";
  return UCS_IS_ENDPOINT_ERROR(status) ? "UCS_ERR_ENDPOINT_FAILURE" : "";
}
