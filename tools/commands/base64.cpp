#include "commands/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace ucx::tool {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_of(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < here ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= here ? base64_digits[group >> (18U - 6U * i) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::vector<std::byte>> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t missing = 0;
  while (missing < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++missing;
  }
  std::vector<std::byte> bytes;
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = base64_digits.find(c);
    if (digit == base64_digits.npos) return std::nullopt;
    group = group << 6U | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(group >> bits & 0xffU));
  }
  // The bits that are left over are zero.
  if ((group & ((1U << bits) - 1U)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace ucx::tool
