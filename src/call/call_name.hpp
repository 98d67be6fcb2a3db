// Names of functions that are called.
#pragma once

#include <string_view>

namespace ucx::detail {

constexpr bool is_call_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_call_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Returns why `name` names no function; nothing when it does. A name begins with a letter or "_".
/// Letters, digits, "_", "-" and "." follow. A version from 2 on may stand behind "/".
std::string_view complaint_about_call_name(std::string_view name) noexcept;

/// Returns the name without its version.
std::string_view without_version(std::string_view name) noexcept;

}  // namespace ucx::detail
