// Which bytes of a source something is true of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucx::detail {

/// Disjoint half-open ranges in ascending order; those that touch are one.
class extent_set {
 public:
  bool empty() const noexcept { return extents_.empty(); }
  std::size_t count() const noexcept { return extents_.size(); }
  void clear() noexcept { extents_.clear(); }

  /// REQUIRES: `begin < end`.
  void add(std::uint64_t begin, std::uint64_t end);
  bool overlaps(std::uint64_t begin, std::uint64_t end) const noexcept;
  /// Returns where the first range at or behind `position` begins, at most `end`.
  std::uint64_t next(std::uint64_t position, std::uint64_t end) const noexcept;

 private:
  struct extent {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<extent> extents_;
};

}  // namespace ucx::detail
