#include "worker/driver_seat.hpp"

#include "worker/worker_core.hpp"

namespace ucx::detail {

driver_seat::~driver_seat() {
  if (held_) worker_.seat_taken_.store(false, std::memory_order_seq_cst);
  // Who has slept may be the one that was woken to take it, and then nobody has it.
  const bool passes_on = slept_ && !worker_.seat_taken_.load(std::memory_order_seq_cst);
  if (held_ || passes_on) worker_.waiting_.wake_one();
}

bool driver_seat::take() noexcept {
  if (held_ || !worker_.shared() || worker_.in_handler()) return true;
  held_ = !worker_.seat_taken_.exchange(true, std::memory_order_seq_cst);
  return held_;
}

}  // namespace ucx::detail
