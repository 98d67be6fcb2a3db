#include "worker/cancel_and_wait.hpp"

#include <chrono>
#include <mutex>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "worker/driven_connection.hpp"
#include "worker/looked_at_operation.hpp"
#include "worker/operation.hpp"
#include "worker/operation_group.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So long a handler waits for what is under way: hardware, and a peer that answers, are faster.
constexpr std::chrono::milliseconds moment{5};

/// Makes rounds of UCX until it is done, or `longest` has passed.
void turn_ucx(operation& operation, looked_at_operation* looks, std::chrono::nanoseconds longest) {
  worker_core& worker = operation.worker();
  const clock::time_point until = after(worker.api().now(), longest);
  while (!operation.done() && worker.api().now() < until) {
    if (worker.progress_ucx() == 0) worker.api().relax();
    if (looks != nullptr) looks->look();
  }
}

/// Ends a transfer inside a handler, where nothing may wait for it for long: its connection goes,
/// and the transfer with it. On one host UCX ends it without anybody's help, and without being told
/// to.
void finish_here(operation& operation) {
  const std::chrono::nanoseconds longest = operation.worker().options().heartbeat_timeout;
  driven_connection& connection = *operation.connection();
  auto* const looks = dynamic_cast<looked_at_operation*>(&operation);
  const bool may_be_dropped =
      connection.detects_failure() && (looks == nullptr || looks->ends_with_connection());
  turn_ucx(operation, looks, may_be_dropped ? std::chrono::nanoseconds(moment) : longest);
  if (!operation.done() && may_be_dropped) {
    connection.fail(make_error_code(errc::connection_reset),
                    if_there_is_memory("a transfer was given up inside a completion handler"));
    connection.drop();
    if (looks != nullptr) turn_ucx(operation, looks, longest);
  }
  if (looks != nullptr && !operation.done()) looks->left();
}

}  // namespace

void cancel_and_wait(operation& operation) noexcept {
  worker_core& worker = operation.worker();
  if (worker.is_inherited()) return;
  {
    const std::lock_guard guard(worker.lock());
    if (operation.done()) return;
    operation.give_up(errc::canceled);
    if (operation.done()) return;
    // The library's own from here on, and its peer's: it has no memory of the caller's.
    if (operation.is_own() && operation.awaits_peer()) return;
    if (worker.in_handler() && operation.connection() != nullptr) {
      finish_here(operation);
      return;
    }
  }
  // Giving up moved the deadline to where the connection is dropped instead.
  worker.wait(operation, clock::time_point::max());
}

void cancel_and_wait(operation_group& group, worker_core& worker) noexcept {
  if (worker.is_inherited()) return;
  for (bool first = true;; first = false) {
    operation* left = nullptr;
    {
      const std::lock_guard guard(worker.lock());
      if (first) {
        group.abandon();
        group.give_up_members(errc::canceled);
      }
      left = group.any_member();
      if (left == nullptr) return;
      left->retain();
    }
    cancel_and_wait(*left);
    const std::lock_guard guard(worker.lock());
    const bool ended = left->done();
    left->release();
    if (ended) continue;
    return group.forget_members();
  }
}

}  // namespace ucx::detail
