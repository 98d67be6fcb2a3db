// The tickets by which clients of a server act for others: docs/reference/rules.md, "Agents".
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/access_rules.hpp"
#include "ucx/peer_identity.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

/// A ticket counts once, while the connections of all its holders are there. Safe from any thread.
class ticket_book {
 public:
  /// Tickets of one connection that were not shown.
  static constexpr std::size_t most_of_one = 64;

  /// A client's connection. Workers number theirs each for itself.
  struct connection {
    std::uint64_t worker = 0;
    std::uint64_t number = 0;
    auto operator<=>(const connection&) const = default;
  };
  using identity = std::shared_ptr<const peer_identity>;  ///< Never null.

  /// The right without which the holders' tickets do not count: `none` needs no right.
  struct condition {
    access_right needed = access_right::none;
    std::string name = {};
  };
  /// The clients for which another one acts.
  struct grant {
    std::vector<connection> of = {};
    std::vector<identity> who = {};
    condition while_allowed = {};
  };

  ticket_book() = default;
  ticket_book(const ticket_book&) = delete;
  ticket_book& operator=(const ticket_book&) = delete;

  /// From here on a client may hold tickets.
  void enter(const connection& client, identity who);
  /// Forgets the client and its tickets. Returns whether others act for it.
  bool leave(const connection& client) noexcept;

  /// Errors: closed_by_peer (a holder is not there), busy (it has too many), already_exists,
  /// invalid_argument (all bits are zero).
  std::error_code add(const ticket_secret& secret, std::span<const connection> holders,
                      condition while_allowed);
  /// Returns what the ticket stands for, and forgets it; nothing where there is none. `by` acts for
  /// its holders from here on.
  std::optional<grant> take(const ticket_secret& secret, const connection& by);
  /// Returns whether `ask` says yes of each client for which a connection acts; true where it acts
  /// for none.
  template <class Ask>
  bool allow_all(const connection& by, const Ask& ask) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = acting_.find(by);
    return found == acting_.end() ||
           std::all_of(found->second.begin(), found->second.end(),
                       [&ask](const identity& each) { return ask(*each); });
  }
  /// The connection has ended: it acts for no client any more.
  void ended(const connection& by) noexcept;

 private:
  struct holder {
    identity who;
    std::vector<ticket_secret> tickets = {};
    bool is_acted_for = false;
  };

  void forget(ticket_secret secret) noexcept;

  mutable std::mutex mutex_;
  std::map<connection, holder> holders_;
  std::map<ticket_secret, grant> tickets_;
  std::map<connection, std::vector<identity>> acting_;
};

}  // namespace ucx::detail
