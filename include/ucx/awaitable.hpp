#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ucx {

/// What `co_await` takes in a coroutine that transforms nothing: it is an awaiter, or has an
/// `operator co_await` as a member or as a function.
template <class T>
concept awaiter = requires(T& value, std::coroutine_handle<> coroutine) {
  { value.await_ready() } -> std::convertible_to<bool>;
  value.await_suspend(coroutine);
  value.await_resume();
};
template <class T>
concept awaitable = awaiter<T> || requires(T&& value) {
  std::forward<T>(value).operator co_await();
} || requires(T&& value) {
  operator co_await(std::forward<T>(value));
};

/// What returns an awaitable when it is called with `Arguments`: a coroutine, say. Called and left
/// alone, it would be destroyed before its end, or never begin.
template <class Handler, class... Arguments>
concept awaitable_handler = std::invocable < std::decay_t<Handler>
&, Arguments... > &&awaitable<std::invoke_result_t<std::decay_t<Handler>&, Arguments...>>;

namespace detail {

/// A coroutine that owns itself: it begins at once, and frees itself at its end. Nothing may leave
/// it: whoever called it has gone on.
struct self_owned {
  struct promise_type {
    self_owned get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// GCC takes the coroutine's frame for a type that every source has to see alike.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
/// Calls `handler`, and runs what it returns to its end; both live until then. `report` is told
/// what they throw, on the thread that has resumed them.
template <class Handler, class... Arguments>
self_owned run_to_end(std::shared_ptr<Handler> handler,
                      std::function<void(std::exception_ptr)> report, Arguments... arguments) {
  try {
    auto&& awaited = std::invoke(*handler, std::move(arguments)...);
    co_await std::forward<decltype(awaited)>(awaited);
  } catch (...) {
    report(std::current_exception());
  }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// What `ucx::run_to_end` makes of a `Handler`.
template <class Handler>
struct whole_handler {
  template <class... Arguments>
  requires awaitable_handler<Handler, std::decay_t<Arguments>...>
  void operator()(Arguments&&... arguments) {
    run_to_end(handler, report, std::decay_t<Arguments>(std::forward<Arguments>(arguments))...);
  }

  std::shared_ptr<Handler> handler;
  std::function<void(std::exception_ptr)> report;
};

}  // namespace detail

/// Makes a handler of one that returns an awaitable, such as a coroutine: a call returns when that
/// waits for the first time, and what it returned is run to its end by those who resume it. It is
/// given copies of the arguments, or what was moved out of them.
/// Lifetime: `handler`, and what it returned, live until that has ended, also behind whatever calls
/// the handler; so must what they refer to.
/// Errors: what either throws goes to `on_exception`, on the thread that has resumed it; where that
/// is empty, or throws, the process ends.
template <class Handler>
auto run_to_end(Handler&& handler, std::function<void(std::exception_ptr)> on_exception) {
  using kept = std::decay_t<Handler>;
  return detail::whole_handler<kept>{std::make_shared<kept>(std::forward<Handler>(handler)),
                                     std::move(on_exception)};
}

}  // namespace ucx
