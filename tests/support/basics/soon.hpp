// Waiting for what another process or thread is about to do.
#pragma once

#include <chrono>
#include <thread>

namespace ucx::test {

/// Returns whether `is_so()` within a bounded time.
template <class Condition>
bool soon(Condition&& is_so) {
  for (int i = 0; i < 3000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_so();
}

}  // namespace ucx::test
