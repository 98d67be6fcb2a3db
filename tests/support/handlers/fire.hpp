// The plainest coroutine that awaits something.
#pragma once

#include <coroutine>
#include <exception>

namespace ucx::test {

/// A coroutine that runs by itself; its frame goes at its end.
struct fire {
  struct promise_type {
    fire get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace ucx::test
