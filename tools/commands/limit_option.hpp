// The option that bounds what clients of a server use.
#pragma once

#include <string>
#include <vector>

#include "output/cli_forward.hpp"
#include "ucx/server_limits.hpp"

namespace ucx::tool {

/// Adds `--limit [SCOPE.]NAME=N`, which may be given several times.
void add_limit(CLI::App& command, std::vector<std::string>& given);

/// Returns the library's limits, with those that were given.
/// Throws a `failure` (usage) for one that is none.
server_limits limits_of(const std::vector<std::string>& given);

}  // namespace ucx::tool
