#include "output/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ucx::tool {
namespace {

/// The bytes that a character of UTF-8 may begin with, how many follow, and the range of the first
/// of those. The range leaves out longer forms than needed, and surrogates (RFC 3629). The other
/// bytes are 80 to BF.
struct character_form {
  unsigned char first, last;
  std::size_t more;
  unsigned char second_first, second_last;
};

constexpr character_form forms[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf},
    {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf},
    {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

/// Returns how many bytes the character takes that begins `text`; 0 if none does.
std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  for (const character_form& form : forms) {
    if (byte(0) < form.first || byte(0) > form.last) continue;
    if (text.size() <= form.more) return 0;
    if (byte(1) < form.second_first || byte(1) > form.second_last) return 0;
    for (std::size_t i = 2; i <= form.more; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    }
    return form.more + 1;
  }
  return 0;
}

struct code_range {
  char32_t first, last;
};

/// Characters of Unicode 15 that show nothing, or change how their neighbours show. These are the
/// category Cf, line and paragraph separator, and the property Default_Ignorable_Code_Point. In
/// order.
constexpr code_range invisible[] = {
    {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
    {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

bool is_invisible(char32_t code) noexcept {
  const auto* const at = std::ranges::lower_bound(invisible, code, {}, &code_range::last);
  return at != std::end(invisible) && at->first <= code;
}

/// Returns the number of a character that takes all of `bytes`, which are valid.
char32_t code_of(std::string_view bytes) noexcept {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  char32_t code = first & (0x7fU >> bytes.size());
  for (const char each : bytes.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(each) & 0x3fU);
  }
  return code;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const char32_t code = code_of(character);
    // U+0080 to U+009F are control characters too, and so is such a byte alone to some terminals.
    if (length == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      fmt::format_to(std::back_inserter(made), "\\x{:02x}", static_cast<std::uint32_t>(code));
    } else if (is_invisible(code)) {
      const auto number = static_cast<std::uint32_t>(code);
      made += number > 0xffff ? fmt::format("\\U{:08x}", number) : fmt::format("\\u{:04x}", number);
    } else {
      made.append(character);
    }
    text.remove_prefix(character.size());
  }
  return made;
}

std::string with_visible_strings(std::string_view json) {
  std::string made;
  made.reserve(json.size());
  const auto escape = [&made](char32_t unit) {
    fmt::format_to(std::back_inserter(made), "\\u{:04x}", static_cast<std::uint32_t>(unit));
  };
  while (!json.empty()) {
    const std::string_view character =
        json.substr(0, std::max<std::size_t>(character_length(json), 1));
    const char32_t code = code_of(character);
    const bool shows = character.size() == 1 ? code != 0x7f : code >= 0xa0 && !is_invisible(code);
    if (shows) {
      made.append(character);
    } else if (code > 0xffff) {
      escape(0xd800 + ((code - 0x10000) >> 10U));
      escape(0xdc00 + ((code - 0x10000) & 0x3ffU));
    } else {
      escape(code);
    }
    json.remove_prefix(character.size());
  }
  return made;
}

std::string in_quotes(std::string_view text) {
  std::string made = "'";
  for (const char each : text) made += each == '\'' ? "'\\''" : std::string(1, each);
  return made + '\'';
}

std::string shell_word(std::string_view text) {
  // Brackets, as of IPv6 addresses, are patterns to shells.
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
  const bool is_plain = !text.empty() && text.find_first_not_of(plain) == text.npos;
  return is_plain ? std::string(text) : in_quotes(text);
}

}  // namespace ucx::tool
