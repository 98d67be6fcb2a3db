#include "engine/extent_set.hpp"

#include <algorithm>

namespace ucx::detail {

void extent_set::add(std::uint64_t begin, std::uint64_t end) {
  const auto first = std::find_if(extents_.begin(), extents_.end(),
                                  [&](const extent& each) { return each.end >= begin; });
  if (first == extents_.end() || first->begin > end) {
    extents_.insert(first, {begin, end});
    return;
  }
  const auto behind =
      std::find_if(first, extents_.end(), [&](const extent& each) { return each.begin > end; });
  first->begin = std::min(first->begin, begin);
  first->end = std::max(end, (behind - 1)->end);
  extents_.erase(first + 1, behind);
}

bool extent_set::overlaps(std::uint64_t begin, std::uint64_t end) const noexcept {
  return std::any_of(extents_.begin(), extents_.end(),
                     [&](const extent& each) { return each.begin < end && begin < each.end; });
}

std::uint64_t extent_set::next(std::uint64_t position, std::uint64_t end) const noexcept {
  for (const extent& each : extents_) {
    if (each.begin >= position) return std::min(each.begin, end);
  }
  return end;
}

}  // namespace ucx::detail
