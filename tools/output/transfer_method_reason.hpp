// The reason for the transfer method of a name.
#pragma once

#include <string>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::tool {

/// Returns it in words for people. `transports` are those of the connection.
std::string transfer_method_reason(const entry& described, const remote_region& region,
                                   const std::vector<std::string>& transports);

}  // namespace ucx::tool
