// Lines of an audit about peers, that come from no session: those of services at the server's
// workers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "connection/channel.hpp"
#include "server/audit_file.hpp"
#include "ucx/audit.hpp"

namespace ucx::detail {

/// Each connection has its share of the audit, as its session has. It is kept while lines wait, so
/// there are no more than lines. Safe from any thread.
class peer_audit {
 public:
  explicit peer_audit(std::shared_ptr<audit_file> to) noexcept : to_(std::move(to)) {}

  /// `other`: null where the line is about one peer.
  void tell(const peer_facts& peer, const audit_event& event, const peer_facts* other);
  /// Returns how many shares are kept.
  std::size_t kept() const;

 private:
  /// Workers number their connections each for itself. A peer may get its identity later.
  struct connection {
    std::uint64_t worker = 0;
    std::uint64_t number = 0;
    std::string who = {};  // empty for a stranger
    auto operator<=>(const connection&) const = default;
  };

  std::shared_ptr<audit_file::share> share_of(const peer_facts& peer);

  const std::shared_ptr<audit_file> to_;
  mutable std::mutex mutex_;
  std::map<connection, std::shared_ptr<audit_file::share>> shares_;
};

}  // namespace ucx::detail
