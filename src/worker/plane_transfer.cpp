#include "worker/plane_transfer.hpp"

namespace ucx::detail {

bool plane_transfer::wait_over(std::chrono::nanoseconds longest) {
  std::unique_lock guard(mutex_);
  return changed_.wait_for(guard, longest, [this] { return over_.load(); });
}

}  // namespace ucx::detail
