// A thread of the library's that runs out of memory when a test wants it.
#pragma once

namespace ucx::test {

/// So many allocations of the thread that sets it go well; then one fails. Below 0 none does. Works
/// in a program whose `may_allocate` asks it.
inline thread_local int allocations_until_failure = -1;

inline bool memory_is_short_here() noexcept {
  return allocations_until_failure >= 0 && allocations_until_failure-- == 0;
}

}  // namespace ucx::test
