// The time, and a yield to other threads, for code that waits.
#pragma once

#include "base/clock.hpp"

namespace ucx::detail {

/// An interface, so that a test can let time pass. Thread-safe.
class time_source {
 public:
  virtual ~time_source() = default;

  virtual clock::time_point now() = 0;
  /// Returns now, or up to a clock's tick after it (some milliseconds), at a fifth of the cost. On
  /// a machine that is late with its ticks it may be as late.
  virtual clock::time_point now_or_soon() { return now(); }
  /// Gives up the rest of the time slice: called between rounds of a wait that found nothing.
  /// Returns whether another thread took it.
  virtual bool relax() = 0;
};

}  // namespace ucx::detail
