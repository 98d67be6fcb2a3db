// The sessions of a server: made for whoever asks, and told of what is withdrawn.
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/control_relay.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "server/published_name.hpp"
#include "server/server_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void server_core::accept(endpoint_core& peer) {
  if (is_closed()) return;
  worker_core& home = *core_access::core(*worker_);
  if (&peer.worker() != &home) {
    home.post_work(
        [weak = std::weak_ptr(table_), relay = control_relay::begin(peer, home.weak_from_this())] {
          const std::shared_ptr<session_table> table = weak.lock();
          if (table && table->owner != nullptr) table->owner->admit(relay);
        });
    return;
  }
  auto session = std::make_unique<server_session>(
      std::make_unique<endpoint_channel>(peer), catalogue_, *watcher_, *hasher_, table_->counters,
      [this, key = &peer] { table_->sessions.erase(key); });
  // In the table first, which needs memory.
  channel_receiver* const receiver = session.get();
  table_->sessions[&peer] = std::move(session);
  peer.control().set_receiver(receiver);
}

void server_core::admit(const std::shared_ptr<control_relay>& from) {
  try {
    if (is_closed()) {  // since it was accepted
      return from->make_channel()->blame(errc::connection_refused, "the server was closed");
    }
    auto session = std::make_unique<server_session>(
        from->make_channel(), catalogue_, *watcher_, *hasher_, table_->counters,
        [this, key = from.get()] { table_->relayed.erase(key); });
    channel_receiver* const receiver = session.get();
    table_->relayed[from.get()] = {from, std::move(session)};
    from->attach(receiver);
  } catch (const std::bad_alloc&) {
    from->lacks_memory();
  }
}

void server_core::withdraw(const published_name& gone) noexcept {
  catalogue_.remove(gone);
  tell_withdrawn(gone.region(), if_there_is_memory([&] { return gone.described().name; }));
}

void server_core::tell_withdrawn(std::uint64_t gone, std::string told) noexcept try {
  if (is_closed()) return;  // the clients were told that the server leaves
  // Behind every open that found the name: those run under the worker's lock.
  core_access::core(*worker_)->post_work(
      [weak = std::weak_ptr(table_), region = gone, name = std::move(told)] {
        const std::shared_ptr<session_table> table = weak.lock();
        if (!table) return;
        table->tell_all([&](server_session& each) { each.revoke(region, name); });
      });
} catch (const std::bad_alloc&) {  // who reads it finds out
}

}  // namespace ucx::detail
