// How many files a process may have open.
#pragma once

namespace ucx::tool {

/// Takes as many descriptors as the system grants: each client of a server takes some.
void raise_limit_of_files() noexcept;

}  // namespace ucx::tool
