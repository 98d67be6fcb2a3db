// Pieces of a file as they travel: compressed, where that makes them shorter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ucx/content_digest.hpp"

namespace ucx::tool {

enum class codec { none, zstd, lz4 };

std::string_view name_of(codec by) noexcept;
/// Returns nothing where there is none of that name.
std::optional<codec> codec_of(std::string_view name) noexcept;

struct coded_piece {
  codec by = codec::none;  ///< How the bytes are to be decoded.
  std::vector<std::byte> bytes = {};
  content_digest digest = {};  ///< Of what they were before.
};

/// Returns `piece` compressed by `wanted`, or as it is where that is no longer.
coded_piece encode(codec wanted, std::span<const std::byte> piece);

/// Fills `into`, which is as long as the piece was. Errors: failure with exit_code::integrity,
/// where it is not what was encoded.
void decode(codec by, std::span<const std::byte> coded, const content_digest& digest,
            std::span<std::byte> into);

}  // namespace ucx::tool
