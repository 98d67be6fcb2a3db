// The sources, the target and the terms of a copy.
#pragma once

#include <cstdint>
#include <vector>

#include "copying/copy_ends.hpp"
#include "copying/location.hpp"
#include "copying/tree_walk.hpp"

namespace ucx::tool {

struct copy_order {
  std::vector<location> from;  ///< One at least.
  location to;
  copy_terms terms = {};
  walk_terms walk = {};
  bool recursive = false;
  unsigned parallel = 8;
  std::uint64_t rate = 0;  ///< Bytes in a second at most; 0 is no limit.

  static constexpr unsigned most_parallel = 64;
};

}  // namespace ucx::tool
