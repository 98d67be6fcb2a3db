// UCX's description of a context, as text and taken apart.
#pragma once

#include <string>
#include <vector>

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// Returns UCX's own description, of many lines; empty where there is no memory for it.
std::string description_of(ucp_api& api, ucp_context_h context);

/// Returns the context's resources, as "transport/device".
std::vector<std::string> resources_of(ucp_api& api, ucp_context_h context);

}  // namespace ucx::detail
