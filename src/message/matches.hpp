// Which tags a receive takes.
#pragma once

#include <cstdint>

#include "ucx/receive_target.hpp"

namespace ucx::detail {

constexpr bool matches(const tag_match& wanted, std::uint64_t tag) noexcept {
  return ((tag ^ wanted.tag) & wanted.mask) == 0;
}

}  // namespace ucx::detail
