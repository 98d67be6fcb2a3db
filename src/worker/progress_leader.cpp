#include "worker/progress_leader.hpp"

#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void progress_leadership::follow(clock::time_point until, std::uint32_t seen,
                                 const operation* waited, bool leads) {
  followers_.sleep(waited, until, [&] {
    if (leads && !is_taken()) return false;
    return wakes() == seen || (waited != nullptr && !waited->done());
  });
}

void progress_leadership::wake_followers(const operation* ended) noexcept {
  if (ended != nullptr) {
    followers_.wake_for(*ended);
  } else {
    followers_.wake_for_anything();
  }
}

progress_leader::~progress_leader() {
  progress_leadership& leadership = worker_.leadership();
  if (held_) leadership.leave();
  // A thread that has slept may be the one that was woken to lead: it wakes another, or none leads.
  const bool passes_on = followed_ && !leadership.is_taken();
  if (held_ || passes_on) leadership.wake_one();
}

bool progress_leader::take() noexcept {
  if (held_ || !worker_.is_shared() || worker_.in_handler()) return true;
  held_ = worker_.leadership().take();
  return held_;
}

}  // namespace ucx::detail
