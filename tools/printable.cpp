#include "printable.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

namespace ucx::tool {
namespace {

/// The bytes that a character of UTF-8 may begin with, how many follow, and what the first of those
/// may be: neither a longer form than needed nor a surrogate (RFC 3629). The others are 80 to BF.
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

}  // namespace

std::string printable(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters too, and so is such a byte alone to some terminals.
    const bool second_set =
        length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || second_set || first < 0x20 || first == 0x7f) {
      fmt::format_to(std::back_inserter(made), "\\x{:02x}",
                     static_cast<unsigned char>(text[second_set ? 1 : 0]));
    } else {
      made.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return made;
}

}  // namespace ucx::tool
