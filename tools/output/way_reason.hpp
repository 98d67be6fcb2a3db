// Why the bytes of a name move the way they do.
#pragma once

#include <string>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::tool {

/// Returns it in words for people. `transports` are those of the connection.
std::string reason_of_way(const entry& described, const remote_region& region,
                          const std::vector<std::string>& transports);

}  // namespace ucx::tool
