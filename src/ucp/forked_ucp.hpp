// The seam of inherited objects, in a child of fork().
#pragma once

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// The status by which it refuses: behind the ranges of UCX, and before UCS_ERR_LAST.
inline constexpr auto status_inherited = static_cast<ucs_status_t>(-95);
static_assert(status_inherited > UCS_ERR_LAST && status_inherited < UCS_ERR_LAST_ENDPOINT_FAILURE);

/// It does not reach UCX, whose objects are the parent's. Calls that may fail are refused, and
/// those that only let go of something do nothing. Waits are short, because nothing that is waited
/// for will come. As `real_ucp`, it exists until the process has ended.
ucp_api& forked_ucp() noexcept;

}  // namespace ucx::detail
