// The operation state of every sender: a request, and the one completion that it leads to.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/driven_task.hpp"
#include "ucx/error.hpp"
#include "ucx/execution_names.hpp"
#include "ucx/request.hpp"

namespace ucx {

namespace detail {

/// Counts the completions that are nested on the calling thread, while it lives.
class nested_completion {
 public:
  /// So many may be nested. The next goes through the worker. So a loop of operations that are done
  /// at once needs no more stack, and leaves the worker its rounds.
  static constexpr unsigned most = 64;
  static bool may_nest() noexcept { return depth_ < most; }

  nested_completion() noexcept { ++depth_; }
  ~nested_completion() { --depth_; }
  nested_completion(const nested_completion&) = delete;
  nested_completion& operator=(const nested_completion&) = delete;

 private:
  static inline constinit thread_local unsigned depth_ = 0;
};

/// Errors as codes: `set_error(std::error_code)`.
struct failure_as_code {
  using type = std::error_code;
  static type of(request&, std::error_code outcome) noexcept { return outcome; }
  /// An exception without a code, or whose code is no error, is `invalid_argument`.
  /// REQUIRES: an exception is being caught.
  static type of_exception() noexcept {
    try {
      throw;
    } catch (const std::system_error& failed) {
      if (failed.code()) return failed.code();
    } catch (const std::bad_alloc&) {
      return errc::no_memory;
    } catch (...) {  // it has no code
    }
    return errc::invalid_argument;
  }
};

/// Errors with their words: `set_error(std::exception_ptr)`.
struct failure_as_exception {
  using type = std::exception_ptr;
  static type of(request& ended, std::error_code outcome) noexcept {
    try {
      ended.wait();
      throw ucx::error(outcome, "an operation");
    } catch (...) {
      return std::current_exception();
    }
  }
  static type of_exception() noexcept { return std::current_exception(); }
};

}  // namespace detail

inline namespace UCXIO_EXECUTION_NAMES {
namespace senders {

/// The operation state of one start of an operation. `Start` makes the request, and reads its
/// result. The receiver is called once. UCX has let go of the memory by then, the request and the
/// stop callback are gone, and the receiver may destroy the state.
template <class Start, class Failure, class Receiver>
class request_state final : private ucx::detail::driven_task {
 public:
  using operation_state_concept = execution::operation_state_tag;

  request_state(Start start, Receiver receiver)
      : start_(std::move(start)), receiver_(std::move(receiver)) {}

  /// Begins the operation, unless stop was requested before. One that is under way is canceled by
  /// such a stop: UCX may have its memory.
  void start() & noexcept {
    const auto stop = stop_token();
    if (Start::begins && stop.stop_requested()) {
      is_stopped_ = true;
      return finish();
    }
    try {
      request_ = start_();
      if (request_.done()) {
        outcome_ = request_.error();
        return finish();
      }
      if (stop.stop_possible()) {
        tasks_ = ucx::detail::tasks_of(request_);
        on_stop_.emplace(stop, stop_mark{this});
      }
      return request_.then([this](std::error_code ec) { ended(ec); });
    } catch (...) {
      failure_ = Failure::of_exception();
      has_failed_ = true;
    }
    forget_stop();
    request_ = request();
    finish();
  }

 private:
  /// Runs on whatever thread requests the stop: it leaves the rest to the one that drives.
  struct stop_mark {
    request_state* state;
    void operator()() const noexcept { state->post(state->tasks_); }
  };
  using token = std::decay_t<decltype(execution::get_stop_token(
      execution::get_env(std::declval<const Receiver&>())))>;

  token stop_token() const noexcept {
    return execution::get_stop_token(execution::get_env(receiver_));
  }
  void forget_stop() noexcept {
    on_stop_.reset();  // waits for a mark that is being set
    withdraw();
  }
  /// In a child of fork() the request is not done: `outcome` alone tells why.
  void ended(std::error_code outcome) noexcept {
    outcome_ = outcome;
    forget_stop();
    finish();
  }
  /// On the thread that drives, or inside `start()`.
  void finish() noexcept {
    if (ucx::detail::nested_completion::may_nest()) return complete();
    tasks_ = ucx::detail::tasks_of(request_);
    // Without a worker the request was done at once, and what `start_` refers to is there.
    if (!tasks_) tasks_ = start_.tasks();
    is_late_ = true;
    if (!tasks_ || !post(tasks_)) complete();
  }
  void call(bool) noexcept override {
    if (is_late_) return complete();
    request_.cancel();
  }
  void complete() noexcept {
    const ucx::detail::nested_completion deeper;
    if (is_stopped_ || (outcome_ == errc::canceled && stop_token().stop_requested())) {
      request_ = request();
      return execution::set_stopped(std::move(receiver_));
    }
    if (has_failed_ || outcome_) {
      // Here, because the receiver may destroy the state before it looks.
      auto failure = has_failed_ ? std::move(failure_) : Failure::of(request_, outcome_);
      request_ = request();
      return execution::set_error(std::move(receiver_), std::move(failure));
    }
    start_.succeed(std::move(request_), std::move(receiver_));
  }

  Start start_;
  Receiver receiver_;
  request request_;
  std::shared_ptr<ucx::detail::driven_tasks> tasks_;
  std::optional<execution::stop_callback_for_t<token, stop_mark>> on_stop_;
  std::error_code outcome_;
  typename Failure::type failure_{};  // of a call that could not begin
  bool has_failed_ = false;           // so
  bool is_stopped_ = false;           // before it began
  bool is_late_ = false;              // its completion is a task
};

}  // namespace senders
}  // namespace UCXIO_EXECUTION_NAMES
}  // namespace ucx
