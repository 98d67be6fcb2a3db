// The bytes of a text.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ucx::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace ucx::test
