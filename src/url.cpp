#include "ucx/url.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "detail/name.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

constexpr std::string_view scheme = "ucx:";
constexpr std::size_t longest_host = 255;

/// RFC 3986's unreserved characters, and those of its others that a path may have as they are.
bool stands_for_itself(char c) noexcept {
  constexpr std::string_view others = "-._~!$&'()*+,;=:@/";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

std::string encode(std::string_view name) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    if (stands_for_itself(c)) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += {'%', digits[byte >> 4U], digits[byte & 0x0fU]};
    }
  }
  return text;
}

std::optional<std::string> decode(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    unsigned value = 0;
    const char* const end = text.data() + i + 3;
    const auto [stopped, failed] = std::from_chars(text.data() + i + 1, end, value, 16);
    if (failed != std::errc() || stopped != end) return std::nullopt;
    name += static_cast<char>(value);
    i += 2;
  }
  return name;
}

bool is_host(std::string_view host) noexcept {
  constexpr std::string_view never = "/?#@[]<>\"\\^`{|}% ";
  return !host.empty() && host.size() <= longest_host &&
         std::none_of(host.begin(), host.end(), [&](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || never.find(c) != std::string_view::npos;
         });
}

bool is_ipv6_host(std::string_view host) noexcept {
  return host.find(':') != std::string_view::npos && host.size() <= longest_host &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == ':' || c == '.' || c == '%' || c == '_' || c == '-';
         });
}

/// The case of a host means nothing (RFC 3986, 6.2.2.1), but that of an IPv6 address's zone does:
/// behind
/// "%" stands the name of an interface.
std::string lower_case(std::string_view host) {
  std::string made(host);
  const auto zone = std::find(made.begin(), made.end(), '%');
  std::transform(made.begin(), zone, made.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return made;
}

/// What an error text begins with: the URL, as far as it is fit to be shown.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 200;
  std::string made = "the URL \"";
  for (const char c : text.substr(0, shown)) {
    made += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return made + (text.size() > shown ? "...\"" : "\"");
}

}  // namespace

bool url::is_meant_by(std::string_view text) noexcept {
  return text.size() >= scheme.size() &&
         std::equal(scheme.begin(), scheme.end(), text.begin(), [](char expected, char c) {
           return expected == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

url::url(std::string_view text) {
  std::string what;
  std::error_code ec;
  parse(text, what, ec);
  if (ec) throw error(ec, quoted(text) + ": " + what);
}

url::url(std::string_view text, std::error_code& ec) {
  std::string what;
  ec.clear();
  parse(text, what, ec);
}

url::url(std::string_view host, std::uint16_t port, std::string_view name) {
  std::string what;
  std::error_code ec;
  assign(host, port, name, what, ec);
  if (ec) throw error(ec, "making a URL of its parts: " + what);
}

url::url(std::string_view host, std::uint16_t port, std::string_view name, std::error_code& ec) {
  std::string what;
  ec.clear();
  assign(host, port, name, what, ec);
}

void url::parse(std::string_view text, std::string& what, std::error_code& ec) {
  const auto refuse = [&](std::string why) {
    what = std::move(why);
    ec = errc::bad_url;
  };
  if (!is_meant_by(text)) return refuse("it does not begin with \"ucx://\"");
  std::string_view rest = text.substr(scheme.size());
  if (!rest.starts_with("//")) {
    return refuse(rest.starts_with("/")
                      ? "one of the two slashes behind \"ucx:\" is missing; a path library that "
                        "normalises paths may have removed it"
                      : "\"//\" is missing behind \"ucx:\"");
  }
  rest.remove_prefix(2);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  std::string_view host = authority;
  std::string_view digits;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("\"]\" is missing behind the IPv6 address");
    host = authority.substr(1, end - 1);
    digits = authority.substr(end + 1);
    if (!is_ipv6_host(host)) return refuse("there is no IPv6 address between the brackets");
  } else {
    host = authority.substr(0, authority.find(':'));
    digits = authority.substr(host.size());
    if (host.find('@') != std::string_view::npos) return refuse("a user name has no meaning here");
    if (digits.find(':', 1) != std::string_view::npos) {
      return refuse("an IPv6 address has to be in brackets, or the port has two colons");
    }
  }
  if (digits.size() < 2 || digits.front() != ':') {
    return refuse("the port is missing: ucx://host:port/name");
  }
  digits.remove_prefix(1);
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, failed] = std::from_chars(digits.data(), end, port);
  if (failed != std::errc() || stopped != end || port == 0) {
    return refuse("the port is not a number from 1 to 65535");
  }
  if (path.find_first_of("?#") != std::string_view::npos) {
    return refuse("\"?\" and \"#\" have no meaning here; in a name they are %3F and %23");
  }
  const std::optional<std::string> name = decode(path);
  if (!name) return refuse("\"%\" is not followed by two hexadecimal digits");
  assign(host, port, *name, what, ec);
}

void url::assign(std::string_view host, std::uint16_t port, std::string_view name,
                 std::string& what, std::error_code& ec) {
  const std::string_view complaint = detail::complaint_about_name(name);
  if (!is_host(host) && !is_ipv6_host(host)) {
    what = host.empty() ? "the host is missing" : "the host is not a name or an address";
  } else if (port == 0) {
    what = "the port is zero";
  } else if (!name.empty() && !complaint.empty()) {
    what = "the name can not be one: " + std::string(complaint);
  }
  if (!what.empty()) {
    ec = errc::bad_url;
    return;
  }
  host_ = lower_case(host);
  port_ = port;
  name_ = name;
}

url url::server() const {
  url made = *this;
  made.name_.clear();
  return made;
}

url url::with_name(std::string_view name) const { return url(host_, port_, name); }

std::string to_string(const url& address) {
  if (address.empty()) return {};
  const bool brackets = address.host().find(':') != std::string::npos;
  std::string text = "ucx://";
  text.append(brackets ? "[" : "").append(address.host()).append(brackets ? "]" : "");
  text.append(":").append(std::to_string(address.port()));
  if (!address.name().empty()) text.append("/").append(encode(address.name()));
  return text;
}

}  // namespace ucx

std::size_t std::hash<ucx::url>::operator()(const ucx::url& address) const noexcept {
  const std::size_t host = std::hash<std::string>()(address.host());
  const std::size_t name = std::hash<std::string>()(address.name());
  constexpr std::size_t odd = 0x9e3779b97f4a7c15U;
  return (host * odd + name) * odd + address.port();
}
