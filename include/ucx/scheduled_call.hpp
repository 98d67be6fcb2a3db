#pragma once

#include <chrono>
#include <memory>
#include <system_error>

#include "ucx/export.hpp"

namespace ucx {

namespace detail {
struct scheduled;
struct core_access;
}  // namespace detail

/// A function that a worker will call: a timer, or part of its progress. Destroying the handle
/// takes the call back; `detach()` leaves it to the worker. Threads: as the worker's.
class [[nodiscard]] UCXIO_EXPORT scheduled_call {
 public:
  /// Makes a handle of nothing, which is over.
  scheduled_call() noexcept = default;
  scheduled_call(scheduled_call&& other) noexcept = default;
  scheduled_call& operator=(scheduled_call&& other) noexcept;
  /// As `cancel()`.
  ~scheduled_call();

  /// Takes the call back: when this returns, the function neither runs nor will run, unless this is
  /// called inside of it. Returns whether that kept it from a call that was to come, as of a timer
  /// before its time, or of what is called in every round.
  bool cancel() noexcept;
  /// Returns whether nothing will be called any more: it was, or it was canceled, or its worker is
  /// gone.
  bool over() const noexcept;
  /// Waits for `limit` at most until that is so, and returns whether it is. Drives the worker as
  /// every wait. Errors: would_deadlock inside a handler of the worker.
  bool wait_for(std::chrono::nanoseconds limit);
  bool wait_for(std::chrono::nanoseconds limit, std::error_code& ec);
  /// Lets go of the call, which will come all the same.
  void detach() noexcept { call_.reset(); }

 private:
  friend struct detail::core_access;
  explicit scheduled_call(std::shared_ptr<detail::scheduled> call) noexcept;

  std::shared_ptr<detail::scheduled> call_;
};

}  // namespace ucx
