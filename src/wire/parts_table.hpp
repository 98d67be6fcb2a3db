// The table at the beginning of a message of several parts: docs/reference/wire-format.md, "Parts".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ucx::detail {

constexpr std::size_t parts_table_size(std::size_t parts) noexcept {
  return sizeof(std::uint64_t) * (parts + 1);
}

/// Replaces `table` by what tells the lengths of `parts`.
void encode_parts_table(std::span<const std::span<const std::byte>> parts,
                        std::vector<std::byte>& table);

/// Returns the parts of a message; nothing where it is not, to the byte, a table and its parts.
/// Lifetime: as of `message`.
std::optional<std::vector<std::span<std::byte>>> decode_parts(std::span<std::byte> message);

}  // namespace ucx::detail
