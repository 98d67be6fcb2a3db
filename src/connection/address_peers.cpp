#include "connection/address_peers.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// The worker has its handlers as long as it has this.
template <class Handler, class Told>
void address_peers::tell(const Handler& handler, Told told) {
  if (!handler) return;
  worker_.queue_handler([weak = weak_from_this(), &handler, told = std::move(told)] {
    if (const std::shared_ptr<address_peers> kept = weak.lock()) handler(told);
  });
}

void address_peers::established(endpoint_core& connection) {
  if (!worker_.options().on_established) return;
  // What the handle takes is there before the user's code is due, where nobody could be told.
  worker_.queue_handler([weak = weak_from_this(), peer = connection.weak_from_this(),
                         both = std::make_shared<core_access::served>(),
                         report = connection.report()]() mutable {
    const std::shared_ptr<address_peers> kept = weak.lock();
    if (!kept) return;
    worker_core& worker = kept->worker_;
    endpoint shown = core_access::make_served_endpoint(std::move(both),
                                                       worker.weak_from_this().lock(), peer.lock());
    worker.options().on_established(std::move(shown), report);
  });
}

void address_peers::ended(endpoint_core& connection, bool was_established) {
  const std::error_code why = connection.failure();
  if (!why || why == errc::canceled) return;  // closed on this side
  if (was_established) return tell(worker_.options().on_closed, connection.end());
  tell(worker_.options().on_refused,
       connection_refusal{connection.number(), connection.peer(), why, connection.words()});
}

}  // namespace ucx::detail
