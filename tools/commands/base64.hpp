// Bytes as text: base64 of RFC 4648, section 4.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::tool {

std::string base64_of(std::span<const std::byte> bytes);

/// Returns the bytes; nothing where the text is no base64, with its "=" at the end.
std::optional<std::vector<std::byte>> bytes_of_base64(std::string_view text);

}  // namespace ucx::tool
