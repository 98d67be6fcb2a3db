#include "call/call_name.hpp"

#include <cstddef>

#include "ucx/call_function.hpp"

namespace ucx::detail {
std::string_view without_version(std::string_view name) noexcept {
  return name.substr(0, name.find('/'));
}

std::string_view complaint_about_call_name(std::string_view name) noexcept {
  if (name.size() > call_function::max_name_size) return "it is longer than 128 bytes";
  const std::string_view bare = without_version(name);
  if (bare.empty() || !is_call_letter(bare.front())) return "it does not begin with a letter";
  for (const char c : bare) {
    if (!is_call_letter(c) && !is_call_digit(c) && c != '-' && c != '.') {
      return "it has other characters than letters, digits, \"_\", \"-\" and \".\"";
    }
  }
  if (bare.size() == name.size()) return {};
  const std::string_view version = name.substr(bare.size() + 1);
  const bool is_number = !version.empty() && version.size() <= 5 && version.front() != '0' &&
                         version.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number || version == "1") return "its version is no number from 2 to 99999";
  return {};
}

}  // namespace ucx::detail
