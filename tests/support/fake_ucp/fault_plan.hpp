// What shall go wrong, and when: written by a test, asked by the fake at every call.
#pragma once

#include <ucs/type/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "support/fake_ucp/seam_call.hpp"

namespace ucx::test {

/// What shall happen to one call.
struct fault {
  ucs_status_t status = UCS_OK;  ///< What it fails with.
  bool late = false;             ///< The call succeeds, its request completes with `status`.
  std::chrono::nanoseconds delay = std::chrono::nanoseconds::zero();  ///< It ends later by this.
  bool damaged = false;  ///< The last bit of a message's payload arrives as another.
  std::optional<bool> inline_completion = std::nullopt;  ///< Wins over the transport's own choice.
};

/// Probabilities for a random plan; each call draws anew.
struct chaos {
  double fail = 0;
  double fail_late = 0;
  double delay = 0;
  std::chrono::nanoseconds longest_delay = std::chrono::milliseconds(2);
  /// What may fail; empty: everything that reports a status, but for ends and configuration
  /// (a program that can not close or ask has no way to go on).
  std::vector<call> calls = {};
  std::vector<ucs_status_t> statuses = {UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE, UCS_ERR_IO_ERROR,
                                        UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT};
};

/// A plan of faults; the same seed and the same calls give the same faults.
/// `nth` counts calls from the moment of planning: 1 is the next one, 0 stands for every one.
/// Threads: sharing one object is safe.
class fault_plan {
 public:
  explicit fault_plan(std::uint64_t seed) : random_(seed) {}

  /// Lets the call itself report `status`; nothing else happens.
  void fail(call which, ucs_status_t status, unsigned nth = 1);
  /// Lets the call give a request, which completes with `status` without having moved a byte.
  void fail_late(call which, ucs_status_t status, unsigned nth = 1);
  /// Lets the operation end later: reads and writes start late, so that later ones overtake them;
  /// messages only complete late, because an endpoint keeps their order.
  void delay(call which, std::chrono::nanoseconds by, unsigned nth = 1);
  /// Changes the last bit of a message's payload on its way.
  void damage(call which, unsigned nth = 1);
  /// With this probability progress takes a random ready completion instead of the oldest.
  void reorder(double probability);
  /// Decides how many of the operations that can complete inside their call do so; without it the
  /// link's sizes decide.
  void inline_completion(double probability);
  /// Draws faults at random.
  void randomize(const chaos& probabilities);
  /// Forgets everything that was planned.
  void clear();

  /// Returns what shall happen to this call, and counts it.
  fault next(call which);
  /// Returns which of `count` ready items comes next: 0 unless it is time to reorder.
  std::size_t pick(std::size_t count);

 private:
  struct entry {
    call which;
    unsigned remaining;  // 0: every call
    fault what;
  };

  void plan(call which, unsigned nth, fault what);
  bool draw(double probability);
  fault draw_chaos(call which);

  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<entry> entries_;
  std::optional<chaos> chaos_;
  std::optional<double> inline_probability_;
  double reorder_probability_ = 0;
};

}  // namespace ucx::test
