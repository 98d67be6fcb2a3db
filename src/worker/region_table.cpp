#include "worker/region_table.hpp"

#include <mutex>

#include "ucx/error.hpp"
#include "worker/counted_region.hpp"

namespace ucx::detail {

std::uint64_t region_table::next_id() noexcept {
  const std::unique_lock guard(mutex_);
  return ++last_;
}

void region_table::add(counted_region& region) {
  const std::unique_lock guard(mutex_);
  regions_.emplace(region.id(), &region);
}

void region_table::remove(counted_region& region) noexcept {
  const std::unique_lock guard(mutex_);
  regions_.erase(region.id());
}

counted_region* region_table::begin_access(std::uint64_t id, std::error_code& ec) noexcept {
  const std::shared_lock guard(mutex_);
  const auto found = regions_.find(id);
  if (found != regions_.end()) {
    found->second->begin_access();
    return found->second;
  }
  ec = id != 0 && id <= last_ ? errc::revoked : errc::no_such_region;
  return nullptr;
}

}  // namespace ucx::detail
