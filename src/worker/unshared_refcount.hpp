// How a connection outlives its handle for the requests that were started over it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace ucx::detail {

/// Counts requests instead of giving each of them a share. A share is counted by atomic steps.
/// These wait until everything that was stored is in the processor's cache, while what UCX has just
/// sent through shared memory lies in another's. A handle that goes leaves its share here as long
/// as there are requests. Under the worker's lock.
template <class Kept>
class unshared_refcount {
 public:
  /// REQUIRES: the caller has a handle, or a request that keeps it.
  void count_request() noexcept { ++requests_; }
  /// Returns what may go now, without the lock: the last request leaves, and no handle is there.
  std::shared_ptr<Kept> forget_request() noexcept {
    return --requests_ == 0 ? std::move(left_) : std::shared_ptr<Kept>();
  }
  bool has_requests() const noexcept { return requests_ > 0; }
  /// A handle goes; what it leaves in `share` may go, without the lock.
  template <class Handle>
  void leave_share(std::shared_ptr<Handle>& share) noexcept {
    if (requests_ > 0 && !left_) left_ = std::move(share);
  }

 private:
  std::size_t requests_ = 0;
  std::shared_ptr<Kept> left_;
};

}  // namespace ucx::detail
