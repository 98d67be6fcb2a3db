#include "ucx/scheduled_call.hpp"

#include <utility>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "ucx/error.hpp"
#include "worker/call_schedule.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx {

scheduled_call::scheduled_call(std::shared_ptr<detail::scheduled> call) noexcept
    : call_(std::move(call)) {}

scheduled_call& scheduled_call::operator=(scheduled_call&& other) noexcept {
  scheduled_call taken(std::move(other));
  std::swap(call_, taken.call_);
  return *this;
}

scheduled_call::~scheduled_call() { cancel(); }

bool scheduled_call::cancel() noexcept {
  if (!call_ || call_->is_over() || detail::leave_to_parent(call_)) return false;
  const std::shared_ptr<detail::scheduled> kept = call_;  // a handler may destroy the handle
  const std::shared_ptr<detail::worker_core> worker = kept->worker.lock();
  return worker && worker->calls().cancel(*kept);
}

bool scheduled_call::done() const noexcept {
  return !call_ || call_->is_over() || call_->worker.expired();
}

bool scheduled_call::wait_for(std::chrono::nanoseconds limit, std::error_code& ec) {
  std::error_code outcome;
  std::shared_ptr<detail::worker_core> worker;
  if (!done()) {
    if (call_->is_inherited()) {
      outcome = errc::forked_child;
    } else {
      worker = call_->worker.lock();
      if (worker && worker->in_handler()) outcome = errc::would_deadlock;
    }
  }
  detail::end_with(outcome, ec, [outcome] {
    return outcome == errc::forked_child ? "waiting for a call"
                                         : "waiting for a call inside a handler";
  });
  if (outcome || !worker) return !outcome;
  return worker->wait_until(detail::after(worker->api().now(), limit),
                            [kept = call_] { return kept->is_over(); });
}

}  // namespace ucx
