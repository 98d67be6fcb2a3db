#include "worker/call_schedule.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"

namespace ucx::detail {

void call_schedule::at(clock::time_point when, std::shared_ptr<scheduled> call) {
  scheduled& added = *call;
  added.timer = timers_.emplace(when, std::move(call));
}

void call_schedule::in_progress(progress_phase when, std::shared_ptr<scheduled> call) {
  if (!call->repeats) ++once_;
  in_progress_[index(when)].push_back(std::move(call));
  counts_[index(when)].fetch_add(1, std::memory_order_relaxed);
}

clock::time_point call_schedule::next() const noexcept {
  return timers_.empty() ? clock::time_point::max() : timers_.begin()->first;
}

std::shared_ptr<scheduled> call_schedule::take_due(clock::time_point now) {
  while (next() <= now && !timers_.empty()) {
    if (!timers_.begin()->second->repeats) {
      std::shared_ptr<scheduled> due = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      due->timer.reset();
      return due;
    }
    std::shared_ptr<scheduled> due = timers_.begin()->second;
    move_first_behind(now);
    if (!std::exchange(due->is_due, true)) return due;
  }
  return nullptr;
}

/// The first timer repeats: leaves out the times that have passed.
void call_schedule::move_first_behind(clock::time_point now) noexcept {
  scheduled::timers::node_type first = timers_.extract(timers_.begin());
  scheduled& call = *first.mapped();
  const clock::duration passed = (now - first.key()) / call.period * call.period;
  first.key() = after(first.key() + passed, call.period);
  call.timer = timers_.insert(std::move(first));
}

void call_schedule::take(progress_phase when, std::vector<std::shared_ptr<scheduled>>& into) {
  std::vector<std::shared_ptr<scheduled>>& calls = in_progress_[index(when)];
  into.assign(calls.begin(), calls.end());
  const std::size_t before = calls.size();
  std::erase_if(calls, [](const auto& each) { return !each->repeats; });
  once_ -= before - calls.size();
  counts_[index(when)].store(calls.size(), std::memory_order_relaxed);
}

bool call_schedule::cancel(scheduled& call) {
  using state = scheduled::state;
  const state was = call.now();
  if (was == state::waiting) call.reach(state::over);
  if (was == state::running) call.reach(state::last);
  if (call.timer) timers_.erase(*std::exchange(call.timer, std::nullopt));
  for (std::size_t phase = 0; phase < in_progress_.size(); ++phase) {
    const std::size_t erased =
        std::erase_if(in_progress_[phase], [&](const auto& each) { return each.get() == &call; });
    counts_[phase].fetch_sub(erased, std::memory_order_relaxed);
    if (!call.repeats) once_ -= erased;
  }
  return was == state::waiting || (was == state::running && call.repeats);
}

call_schedule::ended call_schedule::end() noexcept {
  ended left;
  left.timers.swap(timers_);
  left.in_progress.swap(in_progress_);
  for (const auto& each : left.timers) each.second->reach(scheduled::state::over);
  for (const auto& calls : left.in_progress) {
    for (const auto& each : calls) each->reach(scheduled::state::over);
  }
  for (auto& count : counts_) count = 0;
  once_ = 0;
  return left;
}

call_schedule::ended::~ended() {
  for (const auto& each : timers) each.second->function = {};
  for (const auto& calls : in_progress) {
    for (const auto& each : calls) each->function = {};
  }
}

}  // namespace ucx::detail
