// The rights of one connection to regions that a server opens for its clients.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ucx/access.hpp"

namespace ucx::detail {

/// A part of the connection, which ends with it. Everything happens under the worker's lock.
class region_grants {
 public:
  region_grants() = default;
  region_grants(const region_grants&) = delete;
  region_grants& operator=(const region_grants&) = delete;

  /// Grants `rights` to the region of this number, beside those that were granted before.
  void add(std::uint64_t region, access rights);
  /// Ends all rights to it; none is fine.
  void remove(std::uint64_t region) noexcept { rights_.erase(region); }
  void clear() noexcept { rights_.clear(); }
  /// Ends all rights, and keeps in mind that there were some, until `remove()`.
  void revoke(std::uint64_t region) noexcept {
    const auto found = rights_.find(region);
    if (found != rights_.end()) found->second = revoked;
  }

  /// Returns what was granted; nothing where the peer has no business with the region.
  std::optional<access> rights_to(std::uint64_t region) const noexcept {
    const auto found = rights_.find(region);
    if (found == rights_.end() || found->second == revoked) return std::nullopt;
    return found->second;
  }
  bool allow(std::uint64_t region, access wanted) const noexcept {
    const std::optional<access> rights = rights_to(region);
    return rights && includes(*rights, wanted);
  }
  bool was_revoked(std::uint64_t region) const noexcept {
    const auto found = rights_.find(region);
    return found != rights_.end() && found->second == revoked;
  }

 private:
  static constexpr access revoked{};

  std::unordered_map<std::uint64_t, access> rights_;
};

inline void region_grants::add(std::uint64_t region, access rights) {
  const auto [found, is_new] = rights_.try_emplace(region, rights);
  if (is_new) return;
  const auto both = static_cast<unsigned>(found->second) | static_cast<unsigned>(rights);
  found->second = static_cast<access>(both);
}

}  // namespace ucx::detail
