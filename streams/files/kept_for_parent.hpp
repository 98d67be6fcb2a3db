// What a child of fork() has of its parent's, and may not destroy.
#pragma once

#include <utility>
#include <vector>

#include "ucx/context.hpp"

namespace ucx::detail {

/// In a child takes over what `owner` holds, and keeps it: its end would tell the parent's peers,
/// and remove the parent's files. Returns whether this is a child.
template <class Owner>
bool keep_for_parent(Owner& owner) {
  if (!is_forked_child()) return false;
  static auto* const left = new std::vector<Owner>;  // never destroyed
  if (owner) left->push_back(std::move(owner));
  return true;
}

}  // namespace ucx::detail
