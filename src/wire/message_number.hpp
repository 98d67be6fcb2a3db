// The numbers of active messages that belong to a library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "wire/wire.hpp"

namespace ucx::detail {

/// Returns the half of a number that tells its owner; 0 of plain numbers below 2^32.
constexpr std::uint32_t owner_of(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(number >> 32U);
}

/// Returns the half of an owner with this hash, which is never that of plain numbers.
constexpr std::uint32_t half_of(std::uint64_t hash) noexcept {
  return std::max(owner_of(hash), std::uint32_t{1});
}

/// Returns the number that travels for `number` of `owner`; of an empty one `number` itself.
inline std::uint64_t message_number(std::string_view owner, std::uint32_t number) noexcept {
  if (owner.empty()) return number;
  const std::uint64_t hash = checksum(std::as_bytes(std::span(owner)));
  return std::uint64_t{half_of(hash)} << 32U | number;
}

}  // namespace ucx::detail
