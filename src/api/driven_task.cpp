#include "ucx/driven_task.hpp"

#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

std::shared_ptr<driven_tasks> tasks_of(const worker& object) noexcept {
  const auto& core = core_access::core(object);
  return core ? core->tasks() : nullptr;
}

std::shared_ptr<driven_tasks> tasks_of(const endpoint& object) noexcept {
  const auto& core = core_access::core(object);
  return core ? core->worker().tasks() : nullptr;
}

std::shared_ptr<driven_tasks> tasks_of(const remote_region& object) noexcept {
  const auto& core = core_access::core(object);
  return core ? core->endpoint().worker().tasks() : nullptr;
}

std::shared_ptr<driven_tasks> tasks_of(const request& object) noexcept {
  const operation* const held = core_access::get(object);
  return held != nullptr && held->has_worker() ? held->worker().tasks() : nullptr;
}

std::error_code why_not_wait(const worker& driven) noexcept {
  const auto& core = core_access::core(driven);
  if (!core) return errc::closed;
  if (core->is_inherited()) return errc::forked_child;
  return core->in_handler() ? errc::would_deadlock : std::error_code();
}

void drive_until(const worker& driven, const std::atomic<bool>& done) {
  // A handler may destroy the worker.
  const std::shared_ptr<worker_core> kept = core_access::core(driven);
  // Without a bound it returns before in a child of fork() alone.
  if (kept->wait_until(clock::time_point::max(), [&] { return done.load(); })) return;
  throw ucx::error(errc::forked_child, "waiting for a sender");
}

}  // namespace ucx::detail
