// A coroutine that begins when it is awaited: dropped, it does nothing.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace ucx::test {

/// Owns its frame.
class lazy {
 public:
  struct promise_type;
  using handle = std::coroutine_handle<promise_type>;
  /// Goes on where the coroutine is awaited.
  struct ending {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(handle ended) noexcept;
    void await_resume() const noexcept {}
  };
  struct promise_type {
    lazy get_return_object() { return lazy(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    ending final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
    std::coroutine_handle<> awaiting;
    std::exception_ptr thrown;
  };

  lazy(lazy&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  lazy& operator=(lazy&& other) = delete;
  ~lazy() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    coroutine_.promise().awaiting = awaiting;
    return coroutine_;
  }
  void await_resume() {
    if (coroutine_.promise().thrown) std::rethrow_exception(coroutine_.promise().thrown);
  }

 private:
  explicit lazy(handle coroutine) : coroutine_(coroutine) {}
  handle coroutine_;
};

inline std::coroutine_handle<> lazy::ending::await_suspend(handle ended) noexcept {
  return ended.promise().awaiting;
}

}  // namespace ucx::test
