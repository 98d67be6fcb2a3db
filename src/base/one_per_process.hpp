// An object of which each process has one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/forked_child.hpp"

namespace ucx::detail {

/// Made when it is first asked for, and never destroyed: static objects may need it at the end. A
/// child of fork() makes a new one, and leaves its parent's: a thread that is not there may have
/// the locks of that one. Safe from any thread.
template <class Object>
class one_per_process {
 public:
  constexpr one_per_process() noexcept = default;
  one_per_process(const one_per_process&) = delete;
  one_per_process& operator=(const one_per_process&) = delete;

  /// Errors: std::bad_alloc.
  Object& get() {
    for (;;) {
      if (Object* const found = find()) return *found;
      held* before = latest_.load(std::memory_order_acquire);
      if (before != nullptr && before->is_of_this_process()) continue;
      auto made = std::make_unique<held>();
      made->before = before;
      if (latest_.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel)) {
        return made.release()->object;
      }
    }
  }
  /// Returns the process's, if it has been made.
  Object* find() const noexcept {
    held* const found = latest_.load(std::memory_order_acquire);
    return found != nullptr && found->is_of_this_process() ? &found->object : nullptr;
  }

 private:
  struct held {
    bool is_of_this_process() const noexcept { return made_after == forks_so_far(); }

    const std::uint32_t made_after = forks_so_far();
    Object object = {};
    held* before = nullptr;  // the parent's, which leak checkers find here
  };
  std::atomic<held*> latest_{nullptr};
};

}  // namespace ucx::detail
