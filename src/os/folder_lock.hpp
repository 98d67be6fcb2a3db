// A lock of a folder, between processes.
#pragma once

#include <system_error>

namespace ucx::detail {

/// Locks an opened folder, until the descriptor is closed. Another process may keep the lock on
/// purpose, where it may open the folder: waits for 2 s at most.
/// Errors: busy (it did); the system's, as `std::generic_category` has them.
std::error_code lock_folder(int descriptor) noexcept;

/// Returns whether that was the error of a file system that locks no folder, as NFS.
bool has_no_locks(const std::error_code& why) noexcept;

}  // namespace ucx::detail
