#include "ucx/audit.hpp"

#include <mutex>
#include <new>
#include <optional>

#include "connection/channel.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

detail::peer_facts told_facts(const std::shared_ptr<detail::endpoint_core>& peer) {
  const std::lock_guard guard(peer->worker().lock());
  return detail::endpoint_channel(*peer).facts();
}

}  // namespace

void append_to_audit(const endpoint& peer, const audit_event& event) noexcept {
  const std::shared_ptr<detail::endpoint_core> about = detail::core_access::core(peer);
  if (!about || about->is_inherited()) return;
  try {
    std::optional<detail::peer_facts> other;
    if (event.other != nullptr) {
      if (const auto second = detail::core_access::core(*event.other)) other = told_facts(second);
    }
    // Under the lock the server does not end.
    const std::lock_guard guard(about->worker().lock());
    detail::control_server* const server = about->worker().control_server();
    if (server == nullptr) return;
    server->audit(detail::endpoint_channel(*about).facts(), event, other ? &*other : nullptr);
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

}  // namespace ucx
