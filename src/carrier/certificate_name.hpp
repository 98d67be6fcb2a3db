// The one name that rules and reports have for who shows a certificate: docs/reference/rules.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ucx::detail {

inline constexpr std::size_t longest_certificate_name = 512;

/// Returns what is wrong with a name; empty where nothing is. It is "uri:", "dns:" or "email:", and
/// printable ASCII behind that, without blanks, quotes and backslashes.
std::string_view complaint_about_certificate_name(std::string_view name) noexcept;
/// Returns the name as it is compared: letters of a DNS name are small.
std::string comparable_certificate_name(std::string_view name);

}  // namespace ucx::detail
