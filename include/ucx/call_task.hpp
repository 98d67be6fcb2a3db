// Functions that peers call as coroutines: docs/reference/calls.md, "Later answers".
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/late_answer.hpp"

namespace ucx {

template <class Result>
class call_task;

namespace detail {

/// The answer of a coroutine. The coroutine ends itself, and answers behind that: its variables,
/// which may refer to the call, are gone before the caller has the answer.
class call_task_promise {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return answering(); }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }
  void begin(late_answer later, std::shared_ptr<const void> function) noexcept {
    function_ = std::move(function);
    later_ = std::move(later);
  }

 protected:
  call_writer result_;

 private:
  struct answering {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      call_task_promise& from = ended.promise();
      late_answer later = std::move(from.later_);
      const std::exception_ptr thrown = std::move(from.thrown_);
      const call_writer result = std::move(from.result_);
      ended.destroy();  // with this object
      if (thrown) {
        later.fail(thrown);
      } else {
        later.send(result);
      }
    }
    void await_resume() const noexcept {}
  };

  std::shared_ptr<const void> function_;
  late_answer later_;
  std::exception_ptr thrown_;
};

template <class Result>
struct call_task_result : call_task_promise {
  template <class Value = Result>
  void return_value(Value&& value) {
    Result result(std::forward<Value>(value));
    write_result(result_, std::move(result));
  }
};
template <>
struct call_task_result<void> : call_task_promise {
  void return_void() { result_.nil(); }
};

}  // namespace detail

/// The return type of a coroutine that peers call. The signature has `Result`. The answer is the
/// result, or the exception. The coroutine may wait for requests, and others run meanwhile.
///
///     ucx::call_task<double> sum(ucx::call_context& call, ucx::window<ucx::access::read> numbers)
///     {
///       std::vector<double> here(numbers.size() / sizeof(double));
///       const ucx::remote_region there = numbers.open(*call.peer);
///       co_await there.start_read_at(0, std::as_writable_bytes(std::span(here)));
///       co_return std::accumulate(here.begin(), here.end(), 0.0);
///     }
///
/// It owns its arguments: all but the `call_context&` are values. The function object lives until
/// the coroutine has ended.
template <class Result>
class [[nodiscard]] call_task {
 public:
  class promise_type : public detail::call_task_result<Result> {
   public:
    call_task get_return_object() noexcept {
      return call_task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  call_task(call_task&& other) noexcept : begun_(std::exchange(other.begun_, nullptr)) {}
  call_task& operator=(call_task&& other) noexcept {
    std::swap(begun_, other.begun_);
    return *this;
  }
  ~call_task() {
    if (begun_) begun_.destroy();
  }

  /// Runs it up to where it waits first. From here on it ends itself. The library calls this.
  /// `function`: what it is a call of.
  void start(late_answer later, std::shared_ptr<const void> function) && {
    begun_.promise().begin(std::move(later), std::move(function));
    std::exchange(begun_, nullptr).resume();
  }

 private:
  explicit call_task(std::coroutine_handle<promise_type> begun) noexcept : begun_(begun) {}

  std::coroutine_handle<promise_type> begun_;
};

}  // namespace ucx
