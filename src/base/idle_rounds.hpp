// How long a thread that waits for workers looks for something to do before it sleeps.
#pragma once

#include <chrono>

#include "base/time_source.hpp"

namespace ucx::detail {

/// How long run() sleeps at most before it looks at its stop token again, were a wake-up lost.
constexpr std::chrono::milliseconds longest_rest{100};

/// Rounds of a wait that found nothing. The first ones spin (some tens of microseconds), later ones
/// yield (some milliseconds), and then it is time to sleep. Where another thread wants the core, it
/// is time at once: the awaited work may be that thread's, and further rounds would delay it.
class idle_rounds {
 public:
  /// Something was found.
  void begin_again() noexcept { rounds_ = 0; }
  /// After a round that found nothing: yields if it is time for that. Returns whether to sleep
  /// instead.
  bool time_to_sleep(time_source& time) {
    if (rounds_ >= spins + yields) return true;
    if (++rounds_ < spins) return false;
    if (time.relax()) rounds_ = spins + yields;
    return false;
  }

  static constexpr unsigned spins = 200;

 private:
  static constexpr unsigned yields = 4000;

  unsigned rounds_ = 0;
};

}  // namespace ucx::detail
