#include "base/name.hpp"

#include <cstdint>

namespace ucx::detail {
namespace {

bool continues(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

/// Returns the length of the character that begins at `at`, or 0 where none does.
std::size_t character_length(std::string_view text, std::size_t at) noexcept {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint32_t value = 0;
  if (first >= 0xc2 && first < 0xe0) {
    length = 2;
    value = first & 0x1fU;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3;
    value = first & 0x0fU;
  } else if (first >= 0xf0 && first < 0xf5) {
    length = 4;
    value = first & 0x07U;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text, at + i)) return 0;
    value = value << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  return overlong || surrogate || value > 0x10ffff ? 0 : length;
}

}  // namespace

std::size_t valid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_length(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string_view complaint_about_name(std::string_view name) noexcept {
  if (name.empty()) return "it is empty";
  if (name.size() > longest_name) return "it is longer than 1024 bytes";
  if (name.find('\0') != std::string_view::npos) return "it has a zero byte";
  if (valid_utf8(name) != name.size()) return "it is not UTF-8";
  return {};
}

}  // namespace ucx::detail
