#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/awaitable.hpp"

namespace ucx {

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
