#include "server/peer_audit.hpp"

#include <span>
#include <string>
#include <utility>

#include "server/audited_channel.hpp"

namespace ucx::detail {
namespace {

std::string who_is(const peer_facts& peer) {
  return to_string(peer.identity ? *peer.identity : peer_identity());
}

}  // namespace

void peer_audit::tell(const peer_facts& peer, const audit_event& event, const peer_facts* other) {
  audit_file::line said{{"event", event.event},
                        {"who", who_is(peer)},
                        {"from", peer.address},
                        {"connection", std::to_string(peer.id)}};
  if (other != nullptr) {
    said.emplace_back("with", who_is(*other));
    said.emplace_back("with_from", other->address);
    said.emplace_back("with_connection", std::to_string(other->id));
  }
  said.emplace_back("name", event.name);
  said.emplace_back("access", event.access);
  said.emplace_back("outcome", audited_outcome(event.outcome));
  const bool is_limited = event.outcome || !peer.identity;
  to_->write(std::span(&said, 1),
             is_limited ? audit_file::weight::limited : audit_file::weight::usual, share_of(peer));
}

std::size_t peer_audit::kept() const {
  const std::lock_guard guard(mutex_);
  return shares_.size();
}

/// Leaves the shares that no line has any more. The file tells what those lost.
std::shared_ptr<audit_file::share> peer_audit::share_of(const peer_facts& peer) {
  connection key{peer.worker, peer.id, peer.identity ? who_is(peer) : std::string()};
  const std::lock_guard guard(mutex_);
  const auto found = shares_.find(key);
  if (found != shares_.end()) return found->second;
  std::erase_if(shares_, [this](const auto& each) {
    if (each.second.use_count() > 1) return false;
    to_->add_lost(each.second->lost.load());
    return true;
  });
  const auto made = std::make_shared<audit_file::share>();
  made->who = key.who;
  shares_.emplace(std::move(key), made);
  return made;
}

}  // namespace ucx::detail
