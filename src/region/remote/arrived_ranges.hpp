// Which parts of an answer have come.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

namespace ucx::detail {

/// Pieces come in any order, and each byte once. A piece that came twice would hide one that never
/// comes, so it is found. Costs a comparison for pieces in order, and memory for others.
class arrived_ranges {
 public:
  /// Returns whether none of these bytes has come before; they have from now on.
  bool add(std::size_t offset, std::size_t length) {
    if (offset < whole_) return false;
    if (offset > whole_ || !beyond_.empty()) return add_beyond(offset, length);
    whole_ += length;
    return true;
  }
  void clear() noexcept {
    whole_ = 0;
    beyond_.clear();
  }

 private:
  bool add_beyond(std::size_t offset, std::size_t length) {
    const auto next = beyond_.lower_bound(offset);
    if (next != beyond_.end() && next->first - offset < length) return false;
    if (next != beyond_.begin()) {
      const auto& [before, size] = *std::prev(next);
      if (offset - before < size) return false;
    }
    beyond_.emplace_hint(next, offset, length);
    while (!beyond_.empty() && beyond_.begin()->first == whole_) {
      whole_ += beyond_.begin()->second;
      beyond_.erase(beyond_.begin());
    }
    return true;
  }

  std::size_t whole_ = 0;                      // so much from the beginning on,
  std::map<std::size_t, std::size_t> beyond_;  // and these behind it, by their offsets
};

}  // namespace ucx::detail
