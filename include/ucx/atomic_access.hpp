#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The effect of an atomic access on the number in the region.
enum class atomic_operation : std::uint8_t {
  load = 1,          ///< Leaves it.
  store,             ///< Replaces it.
  compare_exchange,  ///< Replaces it if it equals `expected`.
  add,               ///< Adds to it, modulo 2^32 or 2^64.
  bit_and,
  bit_or,
  bit_xor,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(atomic_operation value) noexcept;

/// One atomic access to a number of 4 or 8 bytes, as `remote_atomic` makes them.
struct atomic_access {
  atomic_operation operation = atomic_operation::load;
  std::size_t width = 8;       ///< 4 or 8 bytes, in the owner's byte order.
  std::uint64_t operand = 0;   ///< Used by every operation but `load`.
  std::uint64_t expected = 0;  ///< Used by `compare_exchange`.
};

}  // namespace ucx
