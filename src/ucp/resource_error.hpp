// The causes behind UCX's "Input/output error" and "Out of memory" when it makes something.
#pragma once

#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "ucp/ucp_api.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Returns the error of a call that makes a context, worker, listener or endpoint. Where UCX only
/// says that it failed, looks whether the process is out of file descriptors.
std::error_code resource_error(ucs_status_t status) noexcept;

/// With less free in /dev/shm than this, some UCX versions give a context or a worker no shared
/// memory. Each worker takes some 5 MiB, and others may start at the same time.
inline constexpr std::uint64_t ample_shared_memory = std::uint64_t{128} << 20U;

/// Returns the error of a failed ucp_worker_create. That is `no_shared_memory` where memory failed,
/// posix is among the context's `resources`, and /dev/shm is nearly full. With RDMA hardware among
/// these it is `no_lockable_memory` where there is a limit: a worker registers its buffers. Else it
/// is as `resource_error`.
std::error_code worker_error(ucs_status_t status, const std::vector<std::string>& resources);

/// Returns whether the process could not have the memory (`ulimit -v`, `ulimit -d`) that UCX takes
/// for a connection's first messages. Where UCX gets none for what it sends it asks for it again
/// and again within one call, which never returns.
bool lacks_memory_to_connect() noexcept;

/// Returns `too_many_files` if the process lacks the descriptors that a connection takes: UCX
/// starts to connect without them, and says nothing. Returns `no_memory` if it lacks memory for it.
std::error_code connect_error() noexcept;

/// Returns the error of a failed registration or allocation. That is `no_shared_memory` for memory
/// that was to be allocated in shared memory, `no_lockable_memory` where pages could not be pinned.
std::error_code memory_error(ucs_status_t status, bool allocating, bool shared) noexcept;

/// With RDMA hardware a worker locks this much, about, for what it receives. That was 0.5 MiB at
/// once, and 64 MiB with its first connection (1.13.1, one port). UCX that may lock less tries
/// again and again, so that the worker neither works nor fails.
inline constexpr std::size_t memory_locked_by_worker = std::size_t{72} << 20U;

/// Returns why a worker with RDMA hardware has too little of it, and what to do, in words.
std::string words_of_lack_to_lock();

/// Returns how many bytes the process may lock (`ulimit -l`), in words.
std::string words_of_lock_limit();

/// Returns how long a file of this process may be (`ulimit -f`); the largest number where there is
/// no limit.
std::uint64_t longest_file() noexcept;

/// Returns how many bytes of POSIX shared memory are free (/dev/shm), and may be in one file; the
/// largest number if that is not known. UCX commits what it allocates page by page, and takes the
/// machine's memory with it before it finds out that there is not enough.
std::uint64_t free_shared_memory() noexcept;

/// Returns about how many bytes the system could still give, with its swap space; in a container
/// that sees its limit, what that leaves. Returns the largest number if neither is known. Limits of
/// control groups that can not be seen are not known.
std::uint64_t available_memory() noexcept;

/// Returns why a listener on `address` would fail now: in use, not of this machine, not permitted.
/// No version of UCX tells these apart, so a plain socket tries it first.
std::error_code listen_error(ucp_api& api, const socket_address& address);

}  // namespace ucx::detail
