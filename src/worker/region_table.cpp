#include "worker/region_table.hpp"

#include <mutex>

#include "ucx/error.hpp"
#include "worker/counted_region.hpp"

namespace ucx::detail {

region_number region_table::next_number() {
  const std::unique_lock guard(mutex_);
  region_number made{.generation = ++last_};
  while (made.id == 0 || regions_.contains(made.id)) {
    made.id = (std::uint64_t{entropy_()} << 32U) | entropy_();
  }
  return made;
}

void region_table::add(counted_region& region, std::uint64_t generation) {
  const std::unique_lock guard(mutex_);
  generations_.insert(generation);
  regions_.emplace(region.id(), &region);
}

void region_table::remove(counted_region& region, std::uint64_t generation) noexcept {
  const std::unique_lock guard(mutex_);
  generations_.erase(generation);
  regions_.erase(region.id());
}

counted_region* region_table::begin_access(std::uint64_t id, std::uint64_t generation,
                                           std::error_code& ec) noexcept {
  const std::shared_lock guard(mutex_);
  const auto found = regions_.find(id);
  if (found != regions_.end()) {
    found->second->begin_access();
    return found->second;
  }
  ec = missing(generation);
  return nullptr;
}

std::error_code region_table::why_missing(std::uint64_t generation) const noexcept {
  const std::shared_lock guard(mutex_);
  return missing(generation);
}

std::error_code region_table::missing(std::uint64_t generation) const noexcept {
  const bool was_made = generation != 0 && generation <= last_;
  return was_made && !generations_.contains(generation) ? errc::revoked : errc::no_such_region;
}

}  // namespace ucx::detail
