#include "server/server_sessions.hpp"

#include <new>
#include <utility>

#include "connection/control_relay.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

server_sessions::server_sessions(worker_core& home, const catalogue& names, file_watcher& watcher,
                                 file_hasher& hasher, std::size_t most_clients,
                                 const std::atomic<bool>& closed)
    : home_(home), names_(names), watcher_(watcher), hasher_(hasher), closed_(closed) {
  counters_.most = most_clients;
}

void server_sessions::accept(endpoint_core& peer) {
  if (closed_.load(std::memory_order_acquire)) return;
  if (&peer.worker() != &home_) {
    home_.post_work(
        [weak = weak_from_this(), relay = control_relay::begin(peer, home_.weak_from_this())] {
          if (const std::shared_ptr<server_sessions> kept = weak.lock()) kept->admit(relay);
        });
    return;
  }
  auto session = std::make_unique<server_session>(std::make_unique<endpoint_channel>(peer), names_,
                                                  watcher_, hasher_, counters_,
                                                  [this, key = &peer] { sessions_.erase(key); });
  // In the table first, which needs memory.
  channel_receiver* const receiver = session.get();
  sessions_[&peer] = std::move(session);
  peer.control().set_receiver(receiver);
}

void server_sessions::admit(const std::shared_ptr<control_relay>& from) {
  if (ended_) return;
  try {
    if (closed_.load(std::memory_order_acquire)) {  // since it was accepted
      return from->make_channel()->blame(errc::connection_refused, "the server was closed");
    }
    auto session =
        std::make_unique<server_session>(from->make_channel(), names_, watcher_, hasher_, counters_,
                                         [this, key = from.get()] { relayed_.erase(key); });
    channel_receiver* const receiver = session.get();
    relayed_[from.get()] = {from, std::move(session)};
    from->attach(receiver);
  } catch (const std::bad_alloc&) {
    from->lacks_memory();
  }
}

template <class Told>
void server_sessions::tell_all(Told&& told) noexcept {
  const auto tell = [&](server_session& each) {
    try {
      told(each);
    } catch (const std::bad_alloc&) {  // it finds out by itself
    }
  };
  for (const auto& [peer, session] : sessions_) tell(*session);
  for (const auto& [relay, each] : relayed_) tell(*each.session);
}

void server_sessions::tell_withdrawn(std::uint64_t gone, std::string told) noexcept try {
  // Behind every open that found the name: those run under the worker's lock.
  home_.post_work([weak = weak_from_this(), region = gone, name = std::move(told)] {
    const std::shared_ptr<server_sessions> kept = weak.lock();
    if (kept) kept->tell_all([&](server_session& each) { each.revoke(region, name); });
  });
} catch (const std::bad_alloc&) {  // who reads it finds out
}

void server_sessions::tell_leaving() noexcept {
  tell_all([](server_session& each) { each.leave(); });
}

void server_sessions::end() noexcept {
  ended_ = true;
  for (const auto& [peer, session] : sessions_) peer->control().set_receiver(nullptr);
  sessions_.clear();
  for (const auto& [relay, each] : relayed_) each.relay->attach(nullptr);
  relayed_.clear();
}

}  // namespace ucx::detail
