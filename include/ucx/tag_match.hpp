#pragma once

#include <cstdint>

#include "ucx/export.hpp"

namespace ucx {

/// The tags that a receive takes: those that equal `tag` in the bits of `mask`. Made of one number
/// it is that tag alone.
struct tag_match {
  static constexpr std::uint64_t every_bit = ~std::uint64_t{0};

  constexpr tag_match(std::uint64_t wanted,  // NOLINT(google-explicit-constructor): a tag is one
                      std::uint64_t significant = every_bit) noexcept
      : tag(wanted), mask(significant) {}
  /// Takes every tag.
  static constexpr tag_match any() noexcept { return {0, 0}; }

#if UCXIO_OLD_NAMES
  [[deprecated("compare the bits of mask")]] constexpr bool accepts(
      std::uint64_t candidate) const noexcept {
    return ((candidate ^ tag) & mask) == 0;
  }
#endif

  std::uint64_t tag;
  std::uint64_t mask;
};

}  // namespace ucx
