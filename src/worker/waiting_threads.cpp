#include "worker/waiting_threads.hpp"

namespace ucx::detail {

void waiting_threads::wake_those_for(const operation* ended) noexcept {
  const std::lock_guard guard(mutex_);
  for (sleeper* each = sleepers_.front(); each != nullptr; each = sleepers_.next(*each)) {
    if (each->waited == nullptr || each->waited == ended) each->call();
  }
}

void waiting_threads::wake_one() noexcept {
  if (count_.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard guard(mutex_);
  for (sleeper* each = sleepers_.front(); each != nullptr; each = sleepers_.next(*each)) {
    if (each->called) continue;
    each->call();
    return;
  }
}

}  // namespace ucx::detail
