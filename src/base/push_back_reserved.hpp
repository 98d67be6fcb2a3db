// Lists that still take elements where memory is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace ucx::detail {

/// Inside UCX's callbacks nothing can be thrown. Lists that grow there take memory for so many
/// elements before they need it.
inline constexpr std::size_t reserved_places = 64;

/// Adds to `list`, of whose room `kept` is for others. Throws where the room for neither them nor
/// this is there, and none can be had.
template <class Element>
void push_back_reserved(std::vector<Element>& list, Element&& added, std::size_t kept = 0) {
  const std::size_t room = list.capacity() - list.size();
  if (room < kept + reserved_places) {
    try {
      list.reserve(std::max(2 * list.capacity(), list.size() + kept + 2 * reserved_places));
    } catch (const std::bad_alloc&) {
      if (room <= kept) throw;
    }
  }
  list.push_back(std::move(added));
}

}  // namespace ucx::detail
