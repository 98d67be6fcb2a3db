// A copy of the driver's that one thread waits for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>

#include "base/clock.hpp"
#include "cuda/device_copy.hpp"

namespace ucx::detail {

/// The thread looks for its end for a moment before it sleeps: being woken takes as long as the
/// copy of a MiB.
class waited_copy : public device_copy {
 public:
  /// `keeps` is kept until the driver has let go.
  explicit waited_copy(std::shared_ptr<const void> keeps = nullptr) noexcept
      : keeps_(std::move(keeps)) {}

  /// Prepares to be started again. REQUIRES: it was waited for, and has ended.
  void begin_again(std::shared_ptr<const void> keeps) noexcept;
  /// Waits for its end, until `until`; then it may still happen. Errors: its own, timed_out.
  std::error_code wait(clock::time_point until) noexcept;

  bool wanted() const noexcept final { return !given_up_.load(std::memory_order_relaxed); }
  void done() noexcept final;

 private:
  bool ends_soon() noexcept;

  std::shared_ptr<const void> keeps_;
  std::atomic<bool> done_{false};
  std::atomic<bool> sleeps_{false};  // who waits, or is about to
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> given_up_{false};
};

}  // namespace ucx::detail
