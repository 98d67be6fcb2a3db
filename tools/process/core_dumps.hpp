// Core dumps of this process, which would contain the keys of connections.
#pragma once

#include "output/cli_forward.hpp"

namespace ucx::tool {

/// Adds `--no-core` to a command: no core dump, and no other process of this user may look into
/// this one (`PR_SET_DUMPABLE`). That also ends CMA and memory that is mapped by descriptors.
void add_no_core(CLI::App& command);

}  // namespace ucx::tool
