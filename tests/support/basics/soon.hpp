// Waiting for what another process or thread is about to do.
#pragma once

#include <chrono>
#include <thread>

#include "support/basics/sanitizer.hpp"

namespace ucx::test {

/// Returns whether `is_so()` within a bounded time: half a minute, or longer where programs are
/// some ten times as slow.
template <class Condition>
bool soon(Condition&& is_so) {
#if defined(UCXIO_WITH_TSAN)
  constexpr int most_looks = 9000;
#else
  constexpr int most_looks = 3000;
#endif
  for (int i = 0; i < most_looks; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_so();
}

}  // namespace ucx::test
