// The seam in a child of fork().
#pragma once

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// Behind it is nothing: what the library does in such a child does not reach UCX, whose objects
/// are the parent's. Calls that may fail are refused, those that only let go of something do
/// nothing, and waits are short, for nothing that is waited for there will come. As `real_ucp`, it
/// is there until the process has ended.
ucp_api& forked_ucp() noexcept;

}  // namespace ucx::detail
