#include "connection/address_peers.hpp"

#include <mutex>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/old_handlers.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/handler_scope.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

address_peers::address_peers(worker_core& worker)
    : worker_(worker), events_(std::make_shared<connection_events>(events_of(worker.options()))) {}

/// Makes `call` with the handlers that are set then, without the lock.
template <class Call>
void address_peers::queue(Call call) {
  worker_.queue_handler([weak = weak_from_this(), call = std::move(call)]() mutable {
    const std::shared_ptr<address_peers> kept = weak.lock();
    if (!kept) return;
    const auto worker = kept->worker_.weak_from_this().lock();  // a handler may drop it
    std::unique_lock guard(kept->worker_.lock());
    std::shared_ptr<connection_events> events = kept->events_;
    const handler_scope telling(kept->worker_, guard, kept->telling_);
    // The handlers may have been replaced meanwhile: they are destroyed while others wait for it.
    const std::shared_ptr<connection_events> here = std::move(events);
    call(*here);
  });
}

void address_peers::established(endpoint_core& connection) {
  if (!events_->on_established) return;
  // The handle's memory is taken here: its want can be told. It can not when the handler is due.
  queue([this, peer = connection.weak_from_this(), both = std::make_shared<core_access::served>(),
         report = connection.report()](connection_events& events) mutable {
    if (!events.on_established) return;
    events.on_established(core_access::make_served_endpoint(
                              std::move(both), worker_.weak_from_this().lock(), peer.lock()),
                          report);
  });
}

void address_peers::ended(endpoint_core& connection, bool was_established) {
  const std::error_code why = connection.failure();
  if (!why || why == errc::canceled) return;  // closed on this side
  const auto which =
      was_established ? &connection_events::on_closed : &connection_events::on_refused;
  if (!((*events_).*which)) return;
  queue([which, end = connection.end()](connection_events& events) {
    if (events.*which) (events.*which)(end);
  });
}

}  // namespace ucx::detail
