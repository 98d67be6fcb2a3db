// The regions that a context exposes.
#pragma once

#include <cstdint>
#include <random>
#include <shared_mutex>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

namespace ucx::detail {

class counted_region;

/// A region's names to peers.
struct region_number {
  std::uint64_t id = 0;          ///< 64 random bits: a peer can not guess it. Not 0.
  std::uint64_t generation = 0;  ///< Increases with each region of the context, from 1 on.
};

/// Finds what peers name by a number. Threads: safe.
class region_table {
 public:
  region_table() = default;
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  /// Returns a number that no region has, and a generation that none had before.
  region_number next_number();
  void add(counted_region& region, std::uint64_t generation);
  /// Takes the region out of peers' reach; accesses that began earlier may still run.
  void remove(counted_region& region, std::uint64_t generation) noexcept;
  /// Looks a region up for one access and counts the access; the caller calls `end_access`.
  /// Errors: those of why_missing.
  counted_region* begin_access(std::uint64_t id, std::uint64_t generation,
                               std::error_code& ec) noexcept;
  /// Returns what a peer is told of a region that it does not reach: revoked, where that of the
  /// generation was withdrawn, else no_such_region.
  std::error_code why_missing(std::uint64_t generation) const noexcept;

 private:
  std::error_code missing(std::uint64_t generation) const noexcept;

  mutable std::shared_mutex mutex_;
  std::random_device entropy_;
  std::uint64_t last_ = 0;  // generation
  std::unordered_map<std::uint64_t, counted_region*> regions_;
  std::unordered_set<std::uint64_t> generations_;  // of those
};

}  // namespace ucx::detail
