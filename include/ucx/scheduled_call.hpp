#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
struct scheduled;
struct core_access;
}  // namespace detail

/// The part of a round of progress in which a function is called.
enum class progress_phase {
  before,  ///< Before UCX is asked for what has come.
  after,   ///< After everything else, handlers included.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(progress_phase value) noexcept;

/// The number of calls of a function in progress.
enum class repetition {
  once,         ///< In the next round. The worker's thread, or a sleeping driver, makes it at once.
  every_round,  ///< In every round. A worker that sleeps makes none.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(repetition value) noexcept;

/// A function that a worker will call: a timer, or a part of the worker's progress. Destroying the
/// handle cancels the call. `detach()` leaves it to the worker.
/// Threads: as the worker's.
class [[nodiscard]] UCXIO_EXPORT scheduled_call {
 public:
  /// Makes an empty handle, which is over.
  scheduled_call() noexcept = default;
  scheduled_call(scheduled_call&& other) noexcept = default;
  scheduled_call& operator=(scheduled_call&& other) noexcept;
  /// Cancels the call.
  ~scheduled_call();

  /// Cancels the call. When this returns, the function neither runs nor will run, unless it made
  /// this call. Returns whether a later call was prevented: of a timer before its time, or of a
  /// function that is called again and again.
  bool cancel() noexcept;
  /// Returns whether no further call will come: it was made, it was canceled, or the worker is
  /// gone.
  bool done() const noexcept;
  /// Waits for `limit` at most until `done()`, and returns whether it is. Drives the worker as
  /// every wait does.
  /// Errors: would_deadlock inside a handler of the worker.
  bool wait_for(std::chrono::nanoseconds limit, std::error_code& ec = throws);
  /// Lets go of the call. It will come all the same.
  void detach() noexcept { call_.reset(); }

#if UCXIO_OLD_NAMES
  [[deprecated("done()")]] bool over() const noexcept { return done(); }
#endif

 private:
  friend struct detail::core_access;
  explicit scheduled_call(std::shared_ptr<detail::scheduled> call) noexcept;

  std::shared_ptr<detail::scheduled> call_;
};

}  // namespace ucx
