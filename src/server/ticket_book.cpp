#include "server/ticket_book.hpp"

#include <algorithm>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

void ticket_book::enter(const connection& client, identity who) {
  const std::lock_guard guard(mutex_);
  holders_.try_emplace(client, holder{std::move(who)});
}

bool ticket_book::leave(const connection& client) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = holders_.find(client);
  if (found == holders_.end()) return false;
  while (!found->second.tickets.empty()) forget(found->second.tickets.back());
  const bool is_acted_for = found->second.is_acted_for;
  holders_.erase(found);
  return is_acted_for;
}

/// Of all its holders. By value: those of a holder end here.
void ticket_book::forget(ticket_secret secret) noexcept {
  const auto found = tickets_.find(secret);
  if (found == tickets_.end()) return;
  for (const connection& each : found->second.of) {
    const auto of = holders_.find(each);
    if (of != holders_.end()) std::erase(of->second.tickets, secret);
  }
  tickets_.erase(found);
}

std::error_code ticket_book::add(const ticket_secret& secret, std::span<const connection> holders,
                                 condition while_allowed) {
  const std::lock_guard guard(mutex_);
  if (secret == ticket_secret()) return errc::invalid_argument;
  if (tickets_.contains(secret)) return errc::already_exists;
  grant made{.of = {holders.begin(), holders.end()}, .while_allowed = std::move(while_allowed)};
  std::vector<holder*> found;
  for (const connection& each : holders) {
    const auto of = holders_.find(each);
    if (of == holders_.end()) return errc::closed_by_peer;
    if (of->second.tickets.size() >= most_of_one) return errc::busy;
    made.who.push_back(of->second.who);
    found.push_back(&of->second);
  }
  // Without memory it is as it was: the room comes first.
  for (holder* const each : found) each->tickets.reserve(each->tickets.size() + 2);
  tickets_.emplace(secret, std::move(made));
  for (holder* const each : found) each->tickets.push_back(secret);
  return {};
}

std::optional<ticket_book::grant> ticket_book::take(const ticket_secret& secret,
                                                    const connection& by) {
  const std::lock_guard guard(mutex_);
  const auto found = tickets_.find(secret);
  if (found == tickets_.end()) return std::nullopt;
  grant taken = found->second;
  acting_[by] = taken.who;
  for (const connection& each : taken.of) {
    const auto of = holders_.find(each);
    if (of != holders_.end()) of->second.is_acted_for = true;
  }
  forget(secret);
  return taken;
}

void ticket_book::ended(const connection& by) noexcept {
  const std::lock_guard guard(mutex_);
  acting_.erase(by);
}

}  // namespace ucx::detail
