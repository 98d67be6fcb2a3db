// How an atomic access travels, and how the processor performs it: docs/reference/wire-format.md,
// "Atomics".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ucx/access.hpp"

namespace ucx::detail {

/// The payload of an atomic frame; the width is the frame's length.
using atomic_payload = std::array<std::byte, 24>;

/// Writes what is to be done, and whether the answer tells what was there before.
atomic_payload encode(const atomic_access& wanted, bool fetches) noexcept;

struct decoded_atomic {
  atomic_access wanted;
  bool fetches = false;
};
/// Reads it; nothing if it is no atomic access of `width`.
std::optional<decoded_atomic> decode_atomic(std::span<const std::byte> wire,
                                            std::uint64_t width) noexcept;

/// Returns what the region has to be exposed for.
access access_for(const atomic_access& wanted, bool fetches) noexcept;

/// Returns whether it is one of the operations.
constexpr bool is_operation(atomic_operation value) noexcept {
  return value >= atomic_operation::load && value <= atomic_operation::bit_xor;
}

/// Returns whether a number of this width can be at the address.
constexpr bool is_aligned(std::uint64_t address, std::size_t width) noexcept {
  return (width == 4 || width == 8) && address % width == 0;
}

/// Performs it as std::atomic_ref does, sequentially consistent, and returns what was there before.
/// REQUIRES: the address is aligned for the width, and that many bytes of live memory.
std::uint64_t perform(const atomic_access& wanted, std::byte* address) noexcept;

}  // namespace ucx::detail
