#include "server/server_sessions.hpp"

#include <new>
#include <utility>

#include "connection/client_ledger.hpp"
#include "connection/control_relay.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "server/audit_file.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

server_sessions::server_sessions(worker_core& home, const catalogue& names, file_watcher& watcher,
                                 file_hasher& hasher, std::size_t most_clients,
                                 const std::atomic<bool>& closed, session_policy policy)
    : home_(home),
      names_(names),
      watcher_(watcher),
      hasher_(hasher),
      closed_(closed),
      policy_(std::move(policy)) {
  counters_.most = most_clients;
  if (policy_.audit) audit_.emplace(policy_.audit);
  policy_.tickets = std::make_shared<ticket_book>();
  policy_.on_principal_left = [this](const ticket_book::connection& gone) {
    tell_all([&gone](server_session& each) { each.principal_left(gone); });
  };
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
                                                  watcher_, hasher_, counters_, policy_,
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
    auto session = std::make_unique<server_session>(
        from->make_channel(), names_, watcher_, hasher_, counters_, policy_,
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

bool server_sessions::allows(const peer_identity& peer, std::uint64_t worker,
                             std::uint64_t connection, access_right wanted,
                             std::string_view name) const noexcept {
  std::shared_ptr<const rule_list> rules;
  {
    const std::lock_guard guard(policy_mutex_);
    rules = policy_.rules;
  }
  const auto ask = [&](const peer_identity& each) { return rules->allows(each, wanted, name); };
  return !rules || (ask(peer) && policy_.tickets->allow_all({worker, connection}, ask));
}

std::shared_ptr<client_account> server_sessions::admit(const peer_identity* who,
                                                       const socket_address& from) {
  return policy_.ledger ? policy_.ledger->admit(who, from) : nullptr;
}

void server_sessions::audit(const peer_facts& peer, const audit_event& event,
                            const peer_facts* other) {
  if (audit_) audit_->tell(peer, event, other);
}

std::error_code server_sessions::expect(const ticket_secret& secret, const peer_facts& one,
                                        const peer_facts& other, access_right needed,
                                        std::string_view name) {
  const ticket_book::connection holders[] = {{one.worker, one.id}, {other.worker, other.id}};
  return policy_.tickets->add(secret, holders, {needed, std::string(name)});
}

void server_sessions::set_rules(std::shared_ptr<const rule_list> rules) {
  {
    const std::lock_guard guard(policy_mutex_);
    policy_.rules = rules;
  }
  if (policy_.audit) policy_.audit->write({{"event", "rules"}});
  for (const auto& [peer, session] : sessions_) session->set_rules(rules);
  for (const auto& [relay, each] : relayed_) each.session->set_rules(rules);
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
