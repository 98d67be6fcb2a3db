// Waits for a sender: from outside of the thread that drives.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ucx/driven_task.hpp"
#include "ucx/error.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/execution_scheduler.hpp"
#include "ucx/worker.hpp"

namespace ucx {
inline namespace UCXIO_EXECUTION_NAMES {
namespace senders {

// The tuple of the values of `set_value_t(...)` among a sender's completions.
template <class Completion>
struct values_of {
  using type = std::tuple<>;
  static constexpr int count = 0;
};
template <class... Values>
struct values_of<execution::set_value_t(Values...)> {
  using type = std::tuple<std::decay_t<Values>...>;
  static constexpr int count = 1;
};
template <class Completions>
struct only_values_of;
template <class... Completions>
struct only_values_of<execution::completion_signatures<Completions...>> {
  static_assert((0 + ... + values_of<Completions>::count) <= 1,
                "ucx::sync_wait: the sender has several kinds of values; see into_variant");
  using type = decltype(std::tuple_cat(std::declval<typename values_of<Completions>::type>()...));
};

/// The environment of a thread that waits: the worker's scheduler, and no stop token.
struct waiting_environment {
  worker_scheduler scheduler;
  worker_scheduler query(execution::get_scheduler_t) const noexcept { return scheduler; }
};
/// The base of receivers of threads that wait.
class waiting_receiver {
 public:
  using receiver_concept = execution::receiver_tag;
  explicit waiting_receiver(const worker& driven) noexcept : driven_(&driven) {}
  waiting_environment get_env() const noexcept { return {worker_scheduler(*driven_)}; }

 private:
  const worker* driven_;
};

/// The place for the outcome that a thread waits for.
template <class Values>
class awaited_outcome final : private ucx::detail::driven_task {
 public:
  class receiver : public waiting_receiver {
   public:
    explicit receiver(awaited_outcome& place) noexcept
        : waiting_receiver(place.driven_), place_(&place) {}
    template <class... Given>
    void set_value(Given&&... given) && noexcept {
      try {
        place_->values_.emplace(std::forward<Given>(given)...);
      } catch (...) {
        place_->failure_ = std::current_exception();
      }
      place_->end();
    }
    template <class Error>
    void set_error(Error&& why) && noexcept {
      place_->failure_ = as_exception(std::forward<Error>(why));
      place_->end();
    }
    void set_stopped() && noexcept { place_->end(); }

   private:
    awaited_outcome* place_;
  };

  explicit awaited_outcome(worker& driven) : driven_(driven) {}
  std::optional<Values> take() {
    ucx::detail::drive_until(driven_, ended_);
    withdraw();  // the thread that has told so may be about to return
    if (failure_) std::rethrow_exception(std::move(failure_));
    return std::move(values_);
  }

 private:
  static std::exception_ptr as_exception(std::exception_ptr why) noexcept { return why; }
  static std::exception_ptr as_exception(std::error_code why) noexcept {
    try {
      throw ucx::error(why, "an operation that was waited for");
    } catch (...) {  // or for want of memory
      return std::current_exception();
    }
  }
  template <class Error>
  static std::exception_ptr as_exception(Error&& why) noexcept {
    try {
      throw std::forward<Error>(why);
    } catch (...) {
      return std::current_exception();
    }
  }
  /// The sender may complete on any thread. The one that waits looks for itself.
  void end() noexcept {
    if (std::this_thread::get_id() == waiting_) return call(true);
    if (!post(ucx::detail::tasks_of(driven_))) call(true);
  }
  void call(bool) noexcept override { ended_.store(true); }

  worker& driven_;
  const std::thread::id waiting_ = std::this_thread::get_id();
  std::optional<Values> values_;
  std::exception_ptr failure_;
  std::atomic<bool> ended_{false};
};

}  // namespace senders

/// Connects and starts `sender`, and drives `driven` until it completes. Where a thread drives the
/// worker, waits for that. Returns the values; nothing where it was stopped.
///
/// Use it instead of the execution library's `sync_wait`, which drives nothing. Over a worker
/// without a thread that one would wait for ever.
/// Lifetime: `driven`, until this returns.
/// Errors: thrown as `ucx::error`: would_deadlock (inside a handler of the worker), forked_child,
/// closed (the worker was moved from): nothing was started; and the sender's. An
/// `std::exception_ptr` and any other error are thrown as they are.
/// The wait has the bound that the sender has.
template <class Sender>
auto sync_wait(worker& driven, Sender&& sender) {
  using environment =
      decltype(execution::get_env(std::declval<const senders::waiting_receiver&>()));
  using values = typename senders::only_values_of<
      execution::completion_signatures_of_t<Sender, environment>>::type;
  if (const std::error_code ec = ucx::detail::why_not_wait(driven)) {
    throw ucx::error(ec, "waiting for a sender");
  }
  using place = senders::awaited_outcome<values>;
  place outcome(driven);
  auto state = execution::connect(std::forward<Sender>(sender), typename place::receiver(outcome));
  execution::start(state);
  return outcome.take();
}

}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
