#include "ucx/progress_loop.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "base/idle_rounds.hpp"
#include "base/result.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_set.hpp"

namespace ucx {
namespace {

using core_pointer = std::shared_ptr<detail::worker_core>;

/// Tells why a loop can not run, where it can not. Returns whether it can.
bool can_run(std::error_code outcome, std::error_code& ec) {
  detail::end_with(outcome, ec, [outcome] {
    return outcome == errc::would_deadlock ? "running a loop inside a handler of its workers"
                                           : "running a loop";
  });
  return !outcome;
}

}  // namespace

struct progress_loop::state {
  std::vector<core_pointer> workers;
  std::optional<detail::worker_set> driven;  // made anew when the workers have changed
  std::atomic<std::uint64_t> rounds{0};
  bool changed = true;
  bool gone = false;  // the loop itself was destroyed, by a handler
  const detail::process_stamp made = {};

  bool is_inherited() const noexcept { return made.is_inherited(); }

  std::error_code check() const noexcept {
    const auto inherited = [](const core_pointer& each) { return each->is_inherited(); };
    if (is_inherited() || std::any_of(workers.begin(), workers.end(), inherited)) {
      return errc::forked_child;
    }
    const bool inside = std::any_of(workers.begin(), workers.end(),
                                    [](const core_pointer& each) { return each->in_handler(); });
    return inside ? make_error_code(errc::would_deadlock) : std::error_code();
  }
  bool progress() {
    if (std::exchange(changed, false)) {
      driven.emplace();
      for (const core_pointer& each : workers) driven->add(each);
    }
    rounds.fetch_add(1, std::memory_order_relaxed);
    driven->look();
    return driven->progress();
  }
  /// The seats are others' again.
  void leave() noexcept {
    driven.reset();
    changed = true;
  }
};

progress_loop::progress_loop() : state_(std::make_shared<state>()) {}
progress_loop::progress_loop(progress_loop&& other) noexcept = default;
progress_loop& progress_loop::operator=(progress_loop&& other) noexcept {
  const progress_loop replaced(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
progress_loop::~progress_loop() {
  if (detail::leave_to_parent(state_)) return;
  if (state_) state_->gone = true;
}

void progress_loop::add(const worker& driven, std::error_code& ec) {
  std::error_code outcome;
  const core_pointer& core = detail::core_access::core(driven);
  if (!core) {
    outcome = errc::closed;
  } else if (core->driven_elsewhere()) {
    outcome = errc::invalid_argument;
  } else if (std::find(state_->workers.begin(), state_->workers.end(), core) ==
             state_->workers.end()) {
    state_->workers.push_back(core);
    state_->changed = true;
  }
  detail::end_with(outcome, ec, [] { return "adding a worker to a loop"; });
}

void progress_loop::remove(const worker& driven) noexcept {
  if (std::erase(state_->workers, detail::core_access::core(driven)) > 0) state_->changed = true;
}

void progress_loop::run(std::stop_token stop, std::error_code& ec) {
  if (!can_run(state_->check(), ec)) return;
  const std::shared_ptr<state> kept = state_;
  // Those that are there now; one that is added later is waited for as long as a rest takes.
  const std::vector<core_pointer> woken = kept->workers;
  const std::stop_callback wake(stop, [&woken] {
    for (const core_pointer& each : woken) each->signal();
  });
  while (!stop.stop_requested() && !kept->gone) {
    if (kept->progress() || kept->changed) continue;
    if (kept->gone) break;
    const detail::clock::time_point now =
        woken.empty() ? detail::clock::now() : woken.front()->api().now();
    kept->driven->rest(now + detail::longest_rest);
    if (kept->workers.empty()) break;  // nothing could ever happen
  }
  kept->leave();
}

bool progress_loop::run_once(std::chrono::nanoseconds limit, std::error_code& ec) {
  if (!can_run(state_->check(), ec)) return false;
  const std::shared_ptr<state> kept = state_;
  bool active = kept->progress();
  if (!active && !kept->workers.empty()) {
    detail::ucp_api& api = kept->workers.front()->api();
    const detail::clock::time_point until = detail::after(api.now(), limit);
    while (!active && !kept->changed && !kept->gone && api.now() < until) {
      kept->driven->rest(until);
      active = kept->progress();
    }
  }
  kept->leave();
  return active;
}

std::uint64_t detail::core_access::rounds(const progress_loop& loop) noexcept {
  return loop.state_->rounds.load(std::memory_order_relaxed);
}

#if UCXIO_OLD_NAMES
std::uint64_t progress_loop::rounds() const noexcept { return detail::core_access::rounds(*this); }
#endif

}  // namespace ucx
