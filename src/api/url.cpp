#include "ucx/url.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "api/url_reader.hpp"
#include "base/name.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

using detail::failure;
using detail::result;

constexpr std::string_view scheme = "ucx:";
constexpr std::string_view file_scheme = "ucx+file:";
constexpr std::string_view socket_scheme = "ucx+tcp:";
constexpr std::string_view tls_scheme = "ucxs:";
constexpr std::string_view unix_scheme = "ucx+unix:";
constexpr std::string_view socket_ending = ".sock";
constexpr std::size_t longest_socket_path = 107;  // of the system
constexpr std::size_t longest_host = 255;

/// RFC 3986's unreserved characters, and the others that a path may have as they are.
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

/// The case of a host means nothing (RFC 3986, 6.2.2.1), but that of an IPv6 address's zone does.
/// The zone, behind "%", is the name of an interface.
std::string lower_case(std::string_view host) {
  std::string made(host);
  const auto zone = std::find(made.begin(), made.end(), '%');
  std::transform(made.begin(), zone, made.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return made;
}

/// Begins an error text: the URL, as far as it is fit to be shown.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 200;
  std::string made = "the URL \"";
  for (const char c : text.substr(0, shown)) {
    made += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return made + (text.size() > shown ? "...\"" : "\"");
}

bool has_scheme(std::string_view text, std::string_view wanted) noexcept {
  return text.size() >= wanted.size() &&
         std::equal(wanted.begin(), wanted.end(), text.begin(), [](char expected, char c) {
           return expected == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

/// Returns the fault of the text behind the host, or behind "//"; empty where there is none.
std::string complaint_about_encoding(std::string_view path) {
  if (path.find_first_of("?#") != std::string_view::npos) {
    return "\"?\" and \"#\" have no meaning here; in a name they are %3F and %23";
  }
  return decode(path) ? "" : "\"%\" is not followed by two hexadecimal digits";
}

/// Returns where the first component ends that names a socket; npos where there is none.
std::size_t end_of_socket_file(std::string_view path) noexcept {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string_view begin = path.substr(0, end);
    if (begin.ends_with(socket_ending)) return begin.size();
    if (end == std::string_view::npos) return end;
  }
}

failure bad(std::string wrong) { return {errc::bad_url, std::move(wrong)}; }

/// Has the text of a failure begin with what was tried.
result<url> with_text(const std::string& doing, result<url> made) {
  if (made) return made;
  return failure{made.why().code, doing + ": " + made.why().text};
}

}  // namespace

bool url::has_url_scheme(std::string_view text) noexcept {
  return has_scheme(text, scheme) || has_scheme(text, file_scheme) ||
         has_scheme(text, socket_scheme) || has_scheme(text, tls_scheme) ||
         has_scheme(text, unix_scheme);
}

url::url(std::string_view text, std::error_code& ec)
    : url(detail::url_reader::read(text).or_end(ec)) {}

url::url(std::string_view host, std::uint16_t port, std::string_view name, std::error_code& ec)
    : url(with_text("making a URL of its parts", detail::url_reader::of_parts(host, port, name))
              .or_end(ec)) {}

url url::over_socket(std::string_view host, std::uint16_t port, std::string_view name,
                     std::error_code& ec) {
  return with_text("making a URL of its parts", detail::url_reader::of_socket(host, port, name))
      .or_end(ec);
}

url url::over_tls(std::string_view host, std::uint16_t port, std::string_view name,
                  std::error_code& ec) {
  return with_text("making a URL of its parts", detail::url_reader::of_tls(host, port, name))
      .or_end(ec);
}

url url::over_unix(std::string_view path, std::string_view name, std::error_code& ec) {
  return with_text("making a URL of a Unix socket", detail::url_reader::of_unix(path, name))
      .or_end(ec);
}

url url::from_address_file(std::string_view file, std::string_view name, std::error_code& ec) {
  return with_text("making a URL of an address file",
                   detail::url_reader::from_address_file(file, name))
      .or_end(ec);
}

namespace detail {

result<url> url_reader::read(std::string_view text) {
  const bool by_file = has_scheme(text, file_scheme);
  const bool is_unix = has_scheme(text, unix_scheme);
  const bool is_tls = has_scheme(text, tls_scheme);
  const bool is_socket = is_tls || has_scheme(text, socket_scheme);
  std::string_view used = by_file     ? file_scheme
                          : is_tls    ? tls_scheme
                          : is_socket ? socket_scheme
                                      : scheme;
  if (is_unix) used = unix_scheme;
  std::string_view rest = text.substr(std::min(used.size(), text.size()));
  std::string wrong;
  if (!url::has_url_scheme(text)) {
    wrong = "it does not begin with \"ucx://\", \"ucxs://\", \"ucx+tcp://\" or \"ucx+unix://\"";
  } else if (rest.starts_with("/") && !rest.starts_with("//")) {
    wrong = "one of the two slashes behind \"" + std::string(used) +
            "\" is missing; a path library that normalises paths may have removed it";
  } else if (!rest.starts_with("//")) {
    wrong = "\"//\" is missing behind \"" + std::string(used) + "\"";
  }
  if (!wrong.empty()) return with_text(quoted(text), bad(wrong));
  rest.remove_prefix(2);
  if (by_file) return with_text(quoted(text), read_address_file(rest));
  if (is_unix) return with_text(quoted(text), read_socket_file(rest));
  auto made = read_authority(rest);
  return with_text(quoted(text), is_socket ? by_socket(std::move(made), is_tls) : std::move(made));
}

result<url> url_reader::by_socket(result<url> made, bool by_tls) {
  if (made) made->is_socket_ = true;
  if (made) made->is_tls_ = by_tls;
  return made;
}

result<url> url_reader::of_tls(std::string_view host, std::uint16_t port, std::string_view name) {
  return by_socket(of_parts(host, port, name), true);
}

result<url> url_reader::of_socket(std::string_view host, std::uint16_t port,
                                  std::string_view name) {
  return by_socket(of_parts(host, port, name));
}

/// The text alone decides where the path ends, so that nothing on a disk can lead it elsewhere.
result<url> url_reader::read_socket_file(std::string_view rest) {
  if (const std::string wrong = complaint_about_encoding(rest); !wrong.empty()) return bad(wrong);
  const std::string whole = *decode(rest);
  if (!whole.starts_with('/')) {
    return bad("the path has to be absolute: ucx+unix:///run/server.sock/name");
  }
  const std::size_t end = end_of_socket_file(whole);
  if (end == std::string::npos) {
    return bad(
        "no part of the path ends in \".sock\", as the socket of a server does: "
        "ucx+unix:///run/server.sock/name");
  }
  const std::size_t name = std::min(end + 1, whole.size());
  return of_unix(std::string_view(whole).substr(0, end), std::string_view(whole).substr(name));
}

result<url> url_reader::of_unix(std::string_view path, std::string_view name) {
  if (!path.starts_with('/')) return bad("the path of the socket has to be absolute");
  if (path.find('\0') != std::string_view::npos) return bad("a path has no zero bytes");
  const std::size_t end = end_of_socket_file(path);
  if (end == std::string_view::npos) return bad("the path of the socket does not end in \".sock\"");
  if (end != path.size()) {
    return bad(
        "a directory on the way to the socket ends in \".sock\": the rest would be read "
        "as a name");
  }
  if (path.size() > longest_socket_path) {
    return bad("the path of the socket has " + std::to_string(path.size()) +
               " bytes, and the system takes " + std::to_string(longest_socket_path));
  }
  url made;
  made.socket_file_ = path;
  made.is_socket_ = true;
  return named(std::move(made), name);
}

/// The path ends where there is a file, below which nothing else can be.
result<url> url_reader::read_address_file(std::string_view rest) {
  if (const std::string wrong = complaint_about_encoding(rest); !wrong.empty()) return bad(wrong);
  const std::string path = *decode(rest);
  if (path.empty()) return bad("the path of the address file is missing");
  if (path.find('\0') != std::string::npos) return bad("a path has no zero bytes");
  std::error_code missing;
  for (std::size_t end = path.find('/', 1); !missing; end = path.find('/', end + 1)) {
    const std::string begin = path.substr(0, end);
    const auto found = std::filesystem::status(begin, missing).type();
    if (found == std::filesystem::file_type::regular) {
      url made;
      made.address_file_ = std::filesystem::absolute(begin, missing).string();
      const std::size_t name = std::min(begin.size() + 1, path.size());
      return named(std::move(made), std::string_view(path).substr(name));
    }
    if (end == std::string::npos) break;
  }
  const bool is_closed = missing == std::errc::permission_denied;
  return failure{is_closed ? errc::permission_denied : errc::connection_refused,
                 "no address file is there, or on the way there" +
                     (missing ? " (" + missing.message() + ")" : std::string()) +
                     "; a server writes it when it begins, and removes it when it ends"};
}

result<url> url_reader::read_authority(std::string_view rest) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  std::string_view host = authority;
  std::string_view digits;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return bad("\"]\" is missing behind the IPv6 address");
    host = authority.substr(1, end - 1);
    digits = authority.substr(end + 1);
    if (!is_ipv6_host(host)) return bad("there is no IPv6 address between the brackets");
  } else {
    host = authority.substr(0, authority.find(':'));
    digits = authority.substr(host.size());
    if (host.find('@') != std::string_view::npos) return bad("a user name has no meaning here");
    if (digits.find(':', 1) != std::string_view::npos) {
      return bad("an IPv6 address has to be in brackets, or the port has two colons");
    }
  }
  if (digits.size() < 2 || digits.front() != ':') {
    return bad("the port is missing: ucx://host:port/name");
  }
  digits.remove_prefix(1);
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, failed] = std::from_chars(digits.data(), end, port);
  if (failed != std::errc() || stopped != end || port == 0) {
    return bad("the port is not a number from 1 to 65535");
  }
  if (const std::string wrong = complaint_about_encoding(path); !wrong.empty()) return bad(wrong);
  return of_parts(host, port, *decode(path));
}

result<url> url_reader::of_parts(std::string_view host, std::uint16_t port, std::string_view name) {
  if (host.empty()) return bad("the host is missing");
  if (!is_host(host) && !is_ipv6_host(host)) return bad("the host is not a name or an address");
  if (port == 0) return bad("the port is zero");
  url made;
  made.host_ = lower_case(host);
  made.port_ = port;
  return named(std::move(made), name);
}

result<url> url_reader::from_address_file(std::string_view file, std::string_view name) {
  if (file.empty() || file.find('\0') != std::string_view::npos)
    return bad("its path can not be one");
  url made;
  std::error_code ec;
  made.address_file_ = std::filesystem::absolute(file, ec).string();
  if (ec) return failure{ec, "its path can not be completed"};
  return named(std::move(made), name);
}

result<url> url_reader::named(url made, std::string_view name) {
  const std::string_view complaint = complaint_about_name(name);
  if (!name.empty() && !complaint.empty()) {
    return bad("the name can not be one: " + std::string(complaint));
  }
  made.name_ = name;
  return made;
}

}  // namespace detail

url url::server() const {
  url made = *this;
  made.name_.clear();
  return made;
}

url url::with_name(std::string_view name, std::error_code& ec) const {
  url made = server();
  std::error_code outcome = errc::bad_url;
  if (!made.empty()) made = detail::url_reader::named(made, name).or_tell(outcome, made);
  detail::end_with(outcome, ec,
                   [this] { return "giving the URL \"" + to_string(server()) + "\" a name"; });
  return made;
}

std::string to_string(const url& address) {
  if (address.empty()) return {};
  const std::string name = address.name().empty() ? "" : '/' + encode(address.name());
  if (!address.address_file().empty()) {
    return "ucx+file://" + encode(address.address_file()) + name;
  }
  if (!address.socket_file().empty()) {
    return "ucx+unix://" + encode(address.socket_file()) + name;
  }
  const bool brackets = address.host().find(':') != std::string::npos;
  std::string text = address.is_tls() ? "ucxs://" : address.is_socket() ? "ucx+tcp://" : "ucx://";
  text.append(brackets ? "[" : "").append(address.host()).append(brackets ? "]" : "");
  text.append(":").append(std::to_string(address.port())).append(name);
  return text;
}

}  // namespace ucx

std::size_t std::hash<ucx::url>::operator()(const ucx::url& address) const noexcept {
  const std::size_t host = std::hash<std::string>()(address.host());
  const std::size_t name = std::hash<std::string>()(address.name());
  constexpr std::size_t odd = 0x9e3779b97f4a7c15U;
  const std::size_t file = std::hash<std::string>()(address.address_file()) ^
                           std::hash<std::string>()(address.socket_file());
  const std::size_t place = address.port() * std::size_t{2} + (address.is_socket() ? 1 : 0);
  return ((host * odd + name) * odd + file) * odd + place;
}
