// Starts what a call that blocks waits for.
#pragma once

#include <mutex>

#include "ucx/request.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Returns the request that `start` makes. Canceling all operations of the worker leaves it alone:
/// no other thread can come between. REQUIRES: `start` waits for nothing.
template <class Start>
request start_blocking(worker_core& worker, const Start& start) {
  if (worker.is_inherited()) return start();
  const std::lock_guard guard(worker.lock());
  request started = start();
  // A write that has ended may yet be on its way.
  if (operation* const begun = core_access::get(started)) begun->set_blocking();
  return started;
}

}  // namespace ucx::detail
