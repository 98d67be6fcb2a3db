// An object that waits for a buffer of a pool.
#pragma once

#include <cstddef>

#include "base/intrusive_list.hpp"

namespace ucx::detail {

class buffer_pool_core;
struct buffer_waiter_tag {};

/// Stands in the line of one pool, which owns what is private here. Leaves it before it dies.
class buffer_waiter : public list_hook<buffer_waiter_tag> {
 protected:
  buffer_waiter() noexcept = default;
  virtual ~buffer_waiter() = default;

  /// A buffer is laid aside, for `buffer_pool_core::take_for`. On whatever thread gave it back,
  /// under the pool's lock, and maybe under the lock of any worker.
  virtual void buffer_came() noexcept = 0;

 private:
  friend class buffer_pool_core;
  std::byte* laid_aside_ = nullptr;
};

}  // namespace ucx::detail
