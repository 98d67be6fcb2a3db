// What is behind UCX's "Input/output error" and "Out of memory" when it makes something.
#pragma once

#include <ucs/type/status.h>

#include <cstdint>
#include <system_error>

#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Returns the error of a call that makes a context, worker, listener or endpoint: where UCX only
/// says that it failed, looks whether the process is out of file descriptors.
std::error_code resource_error(ucs_status_t status) noexcept;

/// Returns the error of a failed registration or allocation: `no_shared_memory` for memory that was
/// to be allocated in shared memory, `no_lockable_memory` where pages could not be pinned.
std::error_code memory_error(ucs_status_t status, bool allocating, bool shared) noexcept;

/// Returns how many bytes of POSIX shared memory are free (/dev/shm); the largest number if nobody
/// knows. UCX commits what it allocates page by page, and takes the machine's memory with it before
/// it finds out that there is not enough.
std::uint64_t free_shared_memory() noexcept;

/// Returns why nobody could listen on `address` now: in use, not of this machine, not permitted.
/// UCX itself tells these apart on no version, so a socket of ours tries it first.
std::error_code listen_error(const socket_address& address) noexcept;

}  // namespace ucx::detail
