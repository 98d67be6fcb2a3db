#include "carrier/certificate_name.hpp"

#include <algorithm>

namespace ucx::detail {
namespace {

constexpr std::string_view dns_prefix = "dns:";

bool is_plain(char letter) noexcept {
  return letter > ' ' && letter < '\x7f' && letter != '"' && letter != '\\';
}

char small(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::string_view complaint_about_certificate_name(std::string_view name) noexcept {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon == name.npos ? 0 : colon + 1);
  if (kind != "uri:" && kind != dns_prefix && kind != "email:") {
    return "begins with none of uri:, dns: and email:";
  }
  if (kind.size() == name.size()) return "is empty";
  if (name.size() > longest_certificate_name) return "is longer than 512 bytes";
  if (!std::all_of(name.begin(), name.end(), &is_plain)) {
    return "has a blank, a quote, a backslash, or a letter that is not ASCII";
  }
  if (kind == dns_prefix && name.find('*') != name.npos) return "has an asterisk";
  return {};
}

std::string comparable_certificate_name(std::string_view name) {
  std::string made(name);
  if (name.starts_with(dns_prefix)) std::transform(made.begin(), made.end(), made.begin(), &small);
  return made;
}

}  // namespace ucx::detail
