// A message that its receiver fetches by RMA: docs/reference/wire-format.md, "Keys".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ucx::detail {

/// Where a message lies, and UCX's key to it, as its announcement says.
struct rma_offer {
  static constexpr std::size_t head = 10;       ///< Bytes before the key.
  static constexpr std::size_t most_key = 512;  ///< Several adapters take some 40 bytes each.

  std::uint64_t address = 0;  ///< Of the message, at the sender.
  std::span<const std::byte> key = {};

  std::size_t size() const noexcept { return head + key.size(); }
  /// REQUIRES: `into` has `size()` bytes, and the key is not too long.
  void encode(std::span<std::byte> into) const noexcept;
};

/// Reads the offer of a message of `length` bytes, with the key in `wire`; nothing where it makes
/// no sense.
std::optional<rma_offer> decode_rma_offer(std::span<const std::byte> wire,
                                          std::uint64_t length) noexcept;

}  // namespace ucx::detail
