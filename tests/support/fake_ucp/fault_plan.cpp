#include "support/fake_ucp/fault_plan.hpp"

#include <algorithm>

namespace ucx::test {
namespace {

// What a random plan leaves alone unless told otherwise.
bool spared(call which) {
  return which == call::ep_close || which == call::mem_unmap || which == call::config_read ||
         which == call::worker_arm || which == call::worker_signal;
}

}  // namespace

void fault_plan::plan(call which, unsigned nth, fault what) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({which, nth, what});
}

void fault_plan::fail(call which, ucs_status_t status, unsigned nth) {
  plan(which, nth, {.status = status});
}

void fault_plan::fail_late(call which, ucs_status_t status, unsigned nth) {
  plan(which, nth, {.status = status, .late = true});
}

void fault_plan::delay(call which, std::chrono::nanoseconds by, unsigned nth) {
  plan(which, nth, {.delay = by});
}

void fault_plan::damage(call which, unsigned nth) { plan(which, nth, {.damaged = true}); }

void fault_plan::reorder(double probability) {
  const std::lock_guard lock(mutex_);
  reorder_probability_ = probability;
}

void fault_plan::inline_completion(double probability) {
  const std::lock_guard lock(mutex_);
  inline_probability_ = probability;
}

void fault_plan::randomize(const chaos& probabilities) {
  const std::lock_guard lock(mutex_);
  chaos_ = probabilities;
}

void fault_plan::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  chaos_.reset();
  inline_probability_.reset();
  reorder_probability_ = 0;
}

bool fault_plan::draw(double probability) {
  return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

fault fault_plan::draw_chaos(call which) {
  fault what;
  const auto& calls = chaos_->calls;
  const bool chosen = calls.empty() ? can_fail(which) && !spared(which)
                                    : std::find(calls.begin(), calls.end(), which) != calls.end();
  if (!chosen) return what;
  const bool at_once = draw(chaos_->fail);
  if (at_once || draw(chaos_->fail_late)) {
    what.late = !at_once;
    const auto& statuses = chaos_->statuses;
    what.status =
        statuses[std::uniform_int_distribution<std::size_t>(0, statuses.size() - 1)(random_)];
  }
  if (draw(chaos_->delay)) {
    what.delay = std::chrono::nanoseconds(std::uniform_int_distribution<std::int64_t>(
        1, std::max<std::int64_t>(1, chaos_->longest_delay.count()))(random_));
  }
  return what;
}

fault fault_plan::next(call which) {
  const std::lock_guard lock(mutex_);
  fault what;
  const auto is_spent = [&](entry& planned) {
    if (planned.which != which) return false;
    const bool every = planned.remaining == 0;
    if (!every && --planned.remaining > 0) return false;
    if (planned.what.status != UCS_OK) {
      what.status = planned.what.status;
      what.late = planned.what.late;
    }
    what.delay += planned.what.delay;
    what.damaged = what.damaged || planned.what.damaged;
    return !every;
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_spent), entries_.end());
  if (chaos_ && what.status == UCS_OK && what.delay.count() == 0) what = draw_chaos(which);
  if (inline_probability_) what.inline_completion = draw(*inline_probability_);
  return what;
}

std::size_t fault_plan::pick(std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (count < 2 || !draw(reorder_probability_)) return 0;
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
}

}  // namespace ucx::test
