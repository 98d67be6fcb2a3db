#include "output/shell_word.hpp"

namespace ucx::tool {

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
