// How a connection lets go of UCX's endpoint, or leaves it to UCX.
#include <new>
#include <string>

#include "base/if_there_is_memory.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "ucp/rdma.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bounds what is left to do for a dropped endpoint among what others keep UCX busy with.
constexpr int rounds_to_close = 100;

}  // namespace

void endpoint_core::start_drop() noexcept {
  if (handle() == nullptr) return;
  worker_.connections().remove(*this);
  // Where that is not at once, the endpoint is left.
  if (may_owe_answers()) ucx_.await_answers();
  if (may_be_left()) {
    const auto write_down = [this] {
      log(log_level::info, "left to UCX until it has nothing in flight: a drop may end the peer");
      return std::string();
    };
    if_there_is_memory(write_down);
    ucx_.leave();
    return worker_.connections().deferred().add_left(*this);
  }
  if (ucx_.transfers() == 0) drop_keys();
  ucx_.start_drop();
}

/// UCX ends a process that answers by UCX alone over a connection that is gone. All that UCX has is
/// of this side's own where it only emulates RMA, and while it connects.
bool endpoint_core::may_be_left() const noexcept {
  if (!plain_ || !detects_failure() || losing_ || ucx_.was_left()) return false;
  if (ucx_.transfers() == 0) return false;
  try {
    return !any_has_rma(ucx_.transports());
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// UCX is done with a write that it emulates when the bytes are on their way.
bool endpoint_core::may_owe_answers() const noexcept {
  return staged_ && staged_->has_written() && detects_failure() && !losing_ && !ucx_.was_left();
}

void endpoint_core::drop_left() noexcept {
  if (!ucx_.is_left()) return;
  worker_.connections().deferred().remove_left(*this);
  ucx_.recall();
  drop();
}

void endpoint_core::drop() noexcept {
  start_drop();
  ucp_api& api = worker_.api();
  const clock::time_point until = api.now() + close_operation::drop_limit;
  // UCX alone, not our handlers: this may run inside one of them.
  while (!ucx_.has_let_go()) {
    if (api.now() >= until) break;
    if (worker_.progress_ucx() == 0) api.relax();
  }
  see_to_sockets();
  drop_keys();
}

/// UCX closes the sockets in later rounds, which a worker that the caller drives may never see.
void endpoint_core::see_to_sockets() noexcept {
  for (int i = 0; i < rounds_to_close && worker_.progress_ucx() != 0; ++i) {
  }
  if (!worker_.context().is_of_ucx()) worker_.signal();  // they took what another may sleep for
}

void endpoint_core::drop_keys() noexcept {
  if (ucx_.is_left()) return;  // UCX may use them
  for (remote_key_owner* each : keys_) each->drop_key();
}

}  // namespace ucx::detail
