#include "ucx/socket_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "os/resolver.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

const ::sockaddr_in& as_v4(const ::sockaddr* address) noexcept {
  return *reinterpret_cast<const ::sockaddr_in*>(address);
}
const ::sockaddr_in6& as_v6(const ::sockaddr* address) noexcept {
  return *reinterpret_cast<const ::sockaddr_in6*>(address);
}

constexpr std::string_view unix_prefix = "unix:";
/// The system wants a zero behind the path where it is to be read back.
constexpr std::size_t longest_unix_path = sizeof(::sockaddr_un::sun_path) - 1;

std::string_view path_of(const ::sockaddr* address) noexcept {
  const auto& there = *reinterpret_cast<const ::sockaddr_un*>(address);
  return {there.sun_path, ::strnlen(there.sun_path, sizeof there.sun_path)};
}

/// REQUIRES: `path` is not too long.
::sockaddr_un unix_of(std::string_view path) noexcept {
  ::sockaddr_un made = {};
  made.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), made.sun_path);
  return made;
}

::socklen_t unix_size(std::string_view path) noexcept {
  const std::size_t named = path.empty() ? 0 : path.size() + 1;
  return static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + named);
}

::sockaddr_in v4_of(::in_addr host, std::uint16_t port) noexcept {
  ::sockaddr_in made = {};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  made.sin_addr = host;
  return made;
}

::sockaddr_in6 v6_of(const ::in6_addr& host, std::uint32_t scope, std::uint16_t port) noexcept {
  ::sockaddr_in6 made = {};
  made.sin6_family = AF_INET6;
  made.sin6_port = htons(port);
  made.sin6_addr = host;
  made.sin6_scope_id = scope;
  return made;
}

template <class Native>
socket_address from(const Native& native) {
  std::error_code ec;
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&native), sizeof native,
                                     ec);
}

// Digits only, no sign, no needless zero in front.
template <class Integer>
bool read_number(std::string_view text, Integer& value) noexcept {
  if (text.empty() || (text.size() > 1 && text.front() == '0') || text.front() == '-') return false;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stopped == end;
}

// The system's parsers want terminated text: nothing longer than an address fits, and no text with
// a zero inside, which would hide what follows it.
template <std::size_t Size>
bool terminate(std::string_view text, std::array<char, Size>& into) noexcept {
  if (text.empty() || text.size() >= Size || text.find('\0') != std::string_view::npos)
    return false;
  *std::copy(text.begin(), text.end(), into.begin()) = '\0';
  return true;
}

// A numeric scope other than 0, or the name of an interface.
bool read_scope(std::string_view text, std::uint32_t& scope) {
  if (read_number(text, scope)) return scope != 0;
  std::array<char, IF_NAMESIZE> name;
  if (!terminate(text, name)) return false;
  scope = ::if_nametoindex(name.data());
  return scope != 0;
}

socket_address read_host(std::string_view host, std::uint16_t port, std::error_code& ec) {
  ec.clear();
  std::array<char, INET6_ADDRSTRLEN> digits;
  if (host.find(':') == std::string_view::npos) {
    ::in_addr v4 = {};
    if (terminate(host, digits) && ::inet_pton(AF_INET, digits.data(), &v4) == 1) {
      return from(v4_of(v4, port));
    }
  } else {
    const std::size_t percent = host.find('%');
    std::uint32_t scope = 0;
    const bool scoped =
        percent == std::string_view::npos || read_scope(host.substr(percent + 1), scope);
    ::in6_addr v6 = {};
    if (scoped && terminate(host.substr(0, percent), digits) &&
        ::inet_pton(AF_INET6, digits.data(), &v6) == 1) {
      return from(v6_of(v6, scope, port));
    }
  }
  ec = errc::bad_address;
  return {};
}

// An IPv4 address in IPv6's clothes, "::ffff:127.0.0.1", reaches what the IPv4 address reaches.
std::array<std::uint8_t, 4> mapped_v4(const ::in6_addr& host) noexcept {
  std::array<std::uint8_t, 4> v4;
  std::copy_n(host.s6_addr + 12, 4, v4.begin());
  return v4;
}

std::string bad_text(std::string_view text) {
  if (text.starts_with(unix_prefix)) {
    return "reading the Unix socket address \"" + std::string(text) +
           "\" (expected an absolute path of at most " + std::to_string(longest_unix_path) +
           " bytes, as unix:/run/server.sock)";
  }
  return "reading the socket address \"" + std::string(text) +
         "\" (expected a numeric host and a port, as 127.0.0.1:7471 or [::1]:7471)";
}

/// No path means one that a listener chooses.
socket_address read_path(std::string_view path, std::error_code& ec) {
  const bool is_absolute = path.empty() || path.front() == '/';
  if (!is_absolute || path.size() > longest_unix_path || path.find('\0') != path.npos) return {};
  const ::sockaddr_un made = unix_of(path);
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&made), unix_size(path),
                                     ec);
}

socket_address read_text(std::string_view text, std::error_code& ec) {
  ec = errc::bad_address;
  if (text.starts_with(unix_prefix)) return read_path(text.substr(unix_prefix.size()), ec);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Brackets are for IPv6 alone, and IPv6 never goes without: "::1:7471" could be read twice.
  if (bracketed != (host.find(':') != std::string_view::npos)) return {};
  std::uint16_t port = 0;
  if (!read_number(text.substr(colon + 1), port)) return {};
  return read_host(host, port, ec);
}

std::vector<socket_address> addresses_of(std::string_view name, std::uint16_t port,
                                         std::error_code& ec) {
  ec = errc::host_not_found;
  std::vector<socket_address> found;
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    ec = detail::from_errno(errno);
    return found;
  }
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> all(list, &::freeifaddrs);
  for (const ::ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (name != each->ifa_name) continue;
    ec.clear();  // it is there, even without an address
    if (each->ifa_addr == nullptr) continue;
    std::error_code not_ip;
    const bool v6 = each->ifa_addr->sa_family == AF_INET6;
    const auto size = static_cast<::socklen_t>(v6 ? sizeof(::sockaddr_in6) : sizeof(::sockaddr_in));
    const auto address = socket_address::from_native(each->ifa_addr, size, not_ip);
    if (!not_ip) found.push_back(address.with_port(port));
  }
  return found;
}

}  // namespace

socket_address::socket_address(std::string_view text, std::error_code& ec) {
  std::error_code outcome;
  *this = read_text(text, outcome);
  detail::end_with(outcome, ec, [text] { return bad_text(text); });
}

socket_address::socket_address(std::string_view host, std::uint16_t port, std::error_code& ec) {
  std::error_code outcome;
  *this = read_host(host, port, outcome);
  detail::end_with(outcome, ec, [host] {
    return "reading the host \"" + std::string(host) +
           "\" (expected a numeric address, as 127.0.0.1 or ::1)";
  });
}

socket_address socket_address::from_native(const ::sockaddr* address, ::socklen_t length,
                                           std::error_code& ec) {
  std::error_code outcome;
  socket_address made;
  const auto keep = [&made](const auto& native) {
    std::memcpy(&made.storage_, &native, sizeof native);
    made.size_ = sizeof native;
  };
  // Rebuilt field by field: padding and the flow label are no part of the value.
  const bool readable = address != nullptr && length >= sizeof(::sa_family_t);
  if (readable && address->sa_family == AF_INET && length >= sizeof(::sockaddr_in)) {
    const ::sockaddr_in& v4 = as_v4(address);
    keep(v4_of(v4.sin_addr, ntohs(v4.sin_port)));
  } else if (readable && address->sa_family == AF_INET6 && length >= sizeof(::sockaddr_in6)) {
    const ::sockaddr_in6& v6 = as_v6(address);
    keep(v6_of(v6.sin6_addr, v6.sin6_scope_id, ntohs(v6.sin6_port)));
  } else if (readable && address->sa_family == AF_UNIX && length <= sizeof(::sockaddr_storage)) {
    ::sockaddr_un there = {};
    std::memcpy(&there, address, std::min<std::size_t>(length, sizeof there));
    const std::string_view path = path_of(reinterpret_cast<const ::sockaddr*>(&there));
    if (path.size() > longest_unix_path) outcome = errc::bad_address;
    if (!outcome) keep(unix_of(path));
    if (!outcome) made.size_ = unix_size(path);
  } else {
    outcome = errc::bad_address;
  }
  detail::end_with(outcome, ec, [] {
    return "taking an address of the operating system that is not IPv4, IPv6 or Unix";
  });
  return made;
}

const ::sockaddr* socket_address::native() const noexcept {
  return reinterpret_cast<const ::sockaddr*>(&storage_);
}

bool socket_address::is_v4() const noexcept { return storage_.ss_family == AF_INET; }
bool socket_address::is_v6() const noexcept { return storage_.ss_family == AF_INET6; }

bool socket_address::is_unix() const noexcept { return storage_.ss_family == AF_UNIX; }

bool socket_address::is_loopback() const noexcept {
  if (is_v4()) return ntohl(as_v4(native()).sin_addr.s_addr) >> 24U == 127;
  if (!is_v6()) return false;
  const ::in6_addr& host = as_v6(native()).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&host) ||
         (IN6_IS_ADDR_V4MAPPED(&host) && mapped_v4(host).front() == 127);
}

bool socket_address::is_wildcard() const noexcept {
  if (is_v4()) return as_v4(native()).sin_addr.s_addr == INADDR_ANY;
  if (!is_v6()) return false;
  const ::in6_addr& host = as_v6(native()).sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&host) ||
         (IN6_IS_ADDR_V4MAPPED(&host) && mapped_v4(host) == std::array<std::uint8_t, 4>{});
}

std::string socket_address::host() const {
  std::array<char, INET6_ADDRSTRLEN> digits;
  if (is_v4()) {
    return ::inet_ntop(AF_INET, &as_v4(native()).sin_addr, digits.data(), digits.size());
  }
  if (is_unix()) return std::string(path_of(native()));
  if (!is_v6()) return {};
  const ::sockaddr_in6& v6 = as_v6(native());
  std::string text = ::inet_ntop(AF_INET6, &v6.sin6_addr, digits.data(), digits.size());
  if (v6.sin6_scope_id != 0) {
    std::array<char, IF_NAMESIZE> name;
    const char* const found = ::if_indextoname(v6.sin6_scope_id, name.data());
    text += '%' + (found != nullptr ? std::string(found) : std::to_string(v6.sin6_scope_id));
  }
  return text;
}

std::uint16_t socket_address::port() const noexcept {
  if (is_v4()) return ntohs(as_v4(native()).sin_port);
  return is_v6() ? ntohs(as_v6(native()).sin6_port) : std::uint16_t{0};
}

socket_address socket_address::with_port(std::uint16_t port) const noexcept {
  socket_address changed = *this;
  // Both families keep the port at the same place, but the language knows only one at a time.
  if (is_v4()) reinterpret_cast<::sockaddr_in&>(changed.storage_).sin_port = htons(port);
  if (is_v6()) reinterpret_cast<::sockaddr_in6&>(changed.storage_).sin6_port = htons(port);
  return changed;
}

std::strong_ordering socket_address::order(const socket_address& other) const noexcept {
  if (const auto order = storage_.ss_family <=> other.storage_.ss_family; order != 0) return order;
  int hosts = 0;
  std::uint32_t scope = 0;
  std::uint32_t other_scope = 0;
  if (is_v4()) {
    hosts =
        std::memcmp(&as_v4(native()).sin_addr, &as_v4(other.native()).sin_addr, sizeof(::in_addr));
  } else if (is_v6()) {
    const ::sockaddr_in6& v6 = as_v6(native());
    const ::sockaddr_in6& other_v6 = as_v6(other.native());
    hosts = std::memcmp(&v6.sin6_addr, &other_v6.sin6_addr, sizeof(::in6_addr));
    scope = v6.sin6_scope_id;
    other_scope = other_v6.sin6_scope_id;
  } else if (is_unix()) {
    hosts = path_of(native()).compare(path_of(other.native()));
  }
  if (hosts != 0) return hosts <=> 0;
  if (const auto order = port() <=> other.port(); order != 0) return order;
  return scope <=> other_scope;
}

std::string to_string(const socket_address& address) {
  if (address.empty()) return "(none)";
  if (address.is_unix()) return std::string(unix_prefix) + address.host();
  const std::string host = address.is_v6() ? '[' + address.host() + ']' : address.host();
  return host + ':' + std::to_string(address.port());
}

std::vector<socket_address> resolve(std::string_view host, std::uint16_t port,
                                    std::chrono::nanoseconds timeout, std::error_code& ec) {
  return detail::look_up(host, port, timeout).or_end(ec);
}

std::vector<socket_address> interface_addresses(std::string_view name, std::uint16_t port,
                                                std::error_code& ec) {
  std::error_code outcome;
  std::vector<socket_address> found = addresses_of(name, port, outcome);
  detail::end_with(outcome, ec, [name] {
    return std::string("looking for the interface \"").append(name) + "\"";
  });
  return found;
}

}  // namespace ucx

std::size_t std::hash<ucx::socket_address>::operator()(
    const ucx::socket_address& address) const noexcept {
  // Bytes that are equal where addresses are: every address is built field by field over zeros.
  const std::string_view bytes(reinterpret_cast<const char*>(address.native()),
                               address.native_size());
  return std::hash<std::string_view>()(bytes);
}
