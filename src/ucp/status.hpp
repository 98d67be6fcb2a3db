// Statuses of UCX and errors of the operating system, in our words.
#pragma once

#include <ucs/type/status.h>
#include <ucs/type/thread_mode.h>

#include <string>
#include <system_error>

#include "ucx/error.hpp"

namespace ucx::detail {

/// Returns the `errc` of a failure of UCX's. A pure mapping: which of a death's statuses (canceled,
/// timed out, reset) is meant is for the caller to know. REQUIRES: `status` is a failure.
errc to_errc(ucs_status_t status) noexcept;

/// Returns the error of `status`; none for UCS_OK and UCS_INPROGRESS.
std::error_code make_error(ucs_status_t status) noexcept;

/// How far a connection had come when UCX gave it up.
enum class connection_stage {
  dialing,   ///< To a socket address, and UCX had not connected the two: nothing was sent yet.
  greeting,  ///< The first messages were on their way, and the peer's welcome not there.
  standing,  ///< The peer had welcomed it.
};

/// Returns the error of a connection's end that UCX reported as `status`. One death has many names
/// in UCX. While dialing, a port without a listener has the same names as a peer that goes before
/// UCX has connected the two: both are refusals.
errc to_loss(ucs_status_t status, connection_stage stage) noexcept;

/// How a connection stands after the failure of a transfer.
enum class transfer_fate {
  alone,    ///< The connection goes on.
  unclear,  ///< UCX could not register the memory; or the connection is lost, and UCX says so soon.
  lost,     ///< The connection is lost, if UCX has not said so yet.
};

/// Returns how it stands. UCX ends transfers before it calls the connection's error handler.
/// REQUIRES: `status` is a failure of what UCX had begun.
transfer_fate fate_of(ucs_status_t status) noexcept;

/// Returns the error of a transfer or flush that UCX has ended. Of a lost connection it is that of
/// the loss; none for UCS_OK.
std::error_code transfer_error(ucs_status_t status) noexcept;

/// Returns UCX's own words for `status`.
std::string words(ucs_status_t status);

/// Returns the name of a thread mode of UCX's: "single", "serialized" or "multi".
const char* thread_mode_name(ucs_thread_mode_t mode) noexcept;

/// Returns the `errc` of an `errno` value. REQUIRES: `number` is not 0.
errc from_errno(int number) noexcept;

}  // namespace ucx::detail
