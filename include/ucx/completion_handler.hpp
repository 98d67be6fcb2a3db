// Functions that the library calls later, and handlers that are coroutines.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <system_error>
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

/// A move-only function of signature `void(Arguments...)`. Its holder says whether it is called at
/// most once, or many times. A small callable (up to four pointers) lives inside, without an
/// allocation. Made of a null pointer, or of an empty `std::function`, it is empty. The result of
/// the function is thrown away. A function that returns an awaitable is refused: `run_to_end()`
/// makes a handler of it.
template <class... Arguments>
class move_only_handler {
 public:
  move_only_handler() noexcept = default;

  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, move_only_handler> &&
           std::invocable<std::decay_t<Function>&, Arguments...> &&
           !awaitable_handler<Function, Arguments...>)
      move_only_handler(
          Function&& function) {  // NOLINT(google-explicit-constructor): as std::function
    using held = std::decay_t<Function>;
    if constexpr (can_be_empty<held>) {
      if (function == nullptr) return;
    }
    if constexpr (fits<held>) {
      ::new (static_cast<void*>(storage_)) held(std::forward<Function>(function));
      operations_ = &inside<held>;
    } else {
      ::new (static_cast<void*>(storage_)) held*(new held(std::forward<Function>(function)));
      operations_ = &outside<held>;
    }
  }

  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, move_only_handler> &&
           awaitable_handler<Function, Arguments...>)
      move_only_handler(Function&& function)  // is dropped: ucx::run_to_end(function, on_exception)
  = delete;

  move_only_handler(move_only_handler&& other) noexcept { take(other); }
  move_only_handler& operator=(move_only_handler&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~move_only_handler() { reset(); }

  explicit operator bool() const noexcept { return operations_ != nullptr; }

  /// Calls the function. REQUIRES: it holds one.
  void operator()(Arguments... arguments) {
    operations_->call(storage_, std::forward<Arguments>(arguments)...);
  }

  /// Destroys the function that is held, if any.
  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(storage_);
  }

 private:
  struct table {
    void (*call)(void*, Arguments...);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };
  static constexpr std::size_t capacity = 4 * sizeof(void*);
  template <class Held>
  static constexpr bool fits =
      sizeof(Held) <= capacity &&
      alignof(Held) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Held>;

  /// Pointers to functions, and wrappers of functions like std::function.
  template <class Held>
  static constexpr bool can_be_empty = std::is_pointer_v<Held> ||
                                       (std::is_constructible_v<Held, std::nullptr_t> &&
                                        requires(const Held& held) { held == nullptr; });

  template <class Held>
  static constexpr table inside{[](void* at, Arguments... arguments) {
                                  (*static_cast<Held*>(at))(std::forward<Arguments>(arguments)...);
                                },
                                [](void* from, void* to) noexcept {
                                  ::new (to) Held(std::move(*static_cast<Held*>(from)));
                                  static_cast<Held*>(from)->~Held();
                                },
                                [](void* at) noexcept { static_cast<Held*>(at)->~Held(); }};
  template <class Held>
  static constexpr table outside{
      [](void* at, Arguments... arguments) {
        (**static_cast<Held**>(at))(std::forward<Arguments>(arguments)...);
      },
      [](void* from, void* to) noexcept { ::new (to) Held*(*static_cast<Held**>(from)); },
      [](void* at) noexcept { delete *static_cast<Held**>(at); }};

  void take(move_only_handler& other) noexcept {
    if (other.operations_ == nullptr) return;
    other.operations_->move(other.storage_, storage_);
    operations_ = std::exchange(other.operations_, nullptr);
  }

  alignas(std::max_align_t) unsigned char storage_[capacity];
  const table* operations_ = nullptr;
};

/// Called once when an operation ends, on the thread that drives progress. It must not block.
using completion_handler = move_only_handler<std::error_code>;

}  // namespace ucx
