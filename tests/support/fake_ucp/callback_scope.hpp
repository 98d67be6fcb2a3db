// Whose code runs: what the simulation calls back as UCX does, or the simulation itself.
#pragma once

#include <utility>

namespace ucx::test {

/// Says so of the calling thread, until its own end. Outside of every scope it is neither's.
class callback_scope {
 public:
  explicit callback_scope(bool calls_back) noexcept : before_(std::exchange(inside_, calls_back)) {}
  ~callback_scope() { inside_ = before_; }
  callback_scope(const callback_scope&) = delete;
  callback_scope& operator=(const callback_scope&) = delete;

  /// Returns whether the calling thread is inside one of UCX's callbacks, and not in a call of
  /// UCX's that was made there.
  static bool inside() noexcept { return inside_; }

 private:
  static inline thread_local bool inside_ = false;
  const bool before_;
};

}  // namespace ucx::test
