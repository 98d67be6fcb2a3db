// How many descriptors this process has open.
#pragma once

#include <cstddef>

#include "os/open_descriptors.hpp"

namespace ucx::test {

inline std::size_t descriptors_now() {
  std::size_t count = 0;
  detail::each_descriptor([&](int) { ++count; });
  return count;
}

}  // namespace ucx::test
