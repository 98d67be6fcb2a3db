// The regions that a context exposes.
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <system_error>
#include <unordered_map>

namespace ucx::detail {

class counted_region;

/// Finds what peers name by a number. Threads: safe.
class region_table {
 public:
  region_table() = default;
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  /// Returns a number that no region had before.
  std::uint64_t next_id() noexcept;
  void add(counted_region& region);
  /// Takes the region out of peers' reach; accesses that began earlier may still run.
  void remove(counted_region& region) noexcept;
  /// Looks a region up for one access and counts the access; the caller calls `end_access`.
  /// Errors: no_such_region, revoked.
  counted_region* begin_access(std::uint64_t id, std::error_code& ec) noexcept;

 private:
  std::shared_mutex mutex_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, counted_region*> regions_;
};

}  // namespace ucx::detail
