// Steps that one thread at a time makes, whichever has a reason for one.
#pragma once

#include <atomic>
#include <cstddef>

#include "pipes/pipe_path.hpp"

namespace ucx::detail {

/// No thread waits here: one that finds another in a step leaves the next step to it. A thread may
/// also find itself in a step, because that may run handlers.
class pipe_steps : public pipe_woken {
 public:
  /// From a handler of the worker.
  void wake() noexcept final { make_steps(true); }

 protected:
  /// From a call of the program.
  void look() noexcept { make_steps(false); }
  /// Does what can be done without waiting.
  virtual void step() noexcept = 0;
  /// Returns whether a round of the worker makes the step, as far as is known.
  bool is_in_round() const noexcept { return in_round_; }

 private:
  void make_steps(bool in_round) noexcept {
    if (reasons_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    in_round_ = in_round;
    std::size_t seen = 0;
    do {
      seen = reasons_.load(std::memory_order_acquire);
      step();
    } while (reasons_.fetch_sub(seen, std::memory_order_acq_rel) != seen);
  }

  bool in_round_ = false;
  std::atomic<std::size_t> reasons_{0};  // for steps, since before the present one
};

}  // namespace ucx::detail
