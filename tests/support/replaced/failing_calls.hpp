// Calls of the system's that fail when a test wants it, in every thread of the program.
#pragma once

namespace ucx::test {

enum class disk_call { readdir, fsync, flock };

/// While it lives the calls of `which` fail with `number`, but for the first `spared`. One at a
/// time. Works in a program that has replaced_calls.cpp among its sources.
class failing_calls {
 public:
  failing_calls(disk_call which, int number, int spared = 0) noexcept;
  ~failing_calls();
  failing_calls(const failing_calls&) = delete;
  failing_calls& operator=(const failing_calls&) = delete;
};

}  // namespace ucx::test
