// Memory that this process may lock.
#pragma once

#include <cstddef>

namespace ucx::detail {

/// Returns whether the process may lock `bytes` more, as a registration with RDMA hardware does. It
/// may do so within RLIMIT_MEMLOCK, and beyond it with CAP_IPC_LOCK. Locks nothing that lasts.
/// Where the system does not tell, it may.
bool may_lock(std::size_t bytes) noexcept;

}  // namespace ucx::detail
