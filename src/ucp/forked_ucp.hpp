// The seam in a child of fork().
#pragma once

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// It does not reach UCX, whose objects are the parent's. Calls that may fail are refused, and
/// those that only let go of something do nothing. Waits are short, because nothing that is waited
/// for will come. As `real_ucp`, it exists until the process has ended.
ucp_api& forked_ucp() noexcept;

}  // namespace ucx::detail
