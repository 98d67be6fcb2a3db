// Whether the processor can read what is at an address, found out without touching it.
#pragma once

namespace ucx::detail {

/// Returns whether the byte at `address` can be read by this process, or could some milliseconds
/// ago. The system is asked: one short system call.
bool is_in_reach(const void* address) noexcept;

}  // namespace ucx::detail
