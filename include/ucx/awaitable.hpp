#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ucx {

/// A type that `co_await` takes in a coroutine without `await_transform`. It is an awaiter, or has
/// an `operator co_await` as a member or as a function.
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

/// A function that returns an awaitable when it is called with `Arguments`, such as a coroutine. A
/// caller that drops the awaitable would destroy it before its end, or never begin it.
template <class Handler, class... Arguments>
concept awaitable_handler = std::invocable < std::decay_t<Handler>
&, Arguments... > &&awaitable<std::invoke_result_t<std::decay_t<Handler>&, Arguments...>>;

namespace detail {

/// A coroutine that owns itself: it begins at once, and frees itself at its end. No exception may
/// leave it, because its caller has gone on.
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
/// Calls `handler`, and runs the awaitable that it returns to its end. Both live until then.
/// `report` gets an exception of either, on the thread that has resumed the coroutine.
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

/// The handler that `ucx::run_to_end` makes of a `Handler`.
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

/// Makes a handler of a function that returns an awaitable, such as a coroutine. A call of the
/// handler returns when the awaitable waits for the first time. The awaitable then runs to its end
/// on the threads that resume it. The function gets copies of the arguments, or values that were
/// moved out of them.
/// Lifetime: `handler` and the awaitable live until the awaitable has ended, even if that is after
/// the end of the object that calls the handler. Everything that they refer to must live as long.
/// Errors: `on_exception` gets an exception of either, on the thread that has resumed the
/// coroutine. Where `on_exception` is empty or throws, the process ends.
template <class Handler>
auto run_to_end(Handler&& handler, std::function<void(std::exception_ptr)> on_exception) {
  using kept = std::decay_t<Handler>;
  return detail::whole_handler<kept>{std::make_shared<kept>(std::forward<Handler>(handler)),
                                     std::move(on_exception)};
}

}  // namespace ucx
