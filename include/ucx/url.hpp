#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/export.hpp"

namespace ucx {

/// The address of a server, or of something that it publishes: `ucx://host:port/name`. A value.
/// The host is a name, an IPv4 address, or an IPv6 address in brackets; the port is always there.
/// The name is everything behind the slash after it, percent-encoded in the text (RFC 3986) and
/// decoded here: UTF-8 of up to 1024 bytes, which may contain slashes.
class UCXIO_EXPORT url {
 public:
  /// Bytes of a name at most, decoded.
  static constexpr std::size_t longest_name = 1024;

  /// Makes an empty URL, which leads nowhere.
  url() noexcept = default;
  /// Reads the text form. Nothing is looked up. Errors: bad_url; the text says what is wrong, and
  /// where.
  explicit url(std::string_view text);
  url(std::string_view text, std::error_code& ec);
  /// Makes a URL of its parts; `name` is not encoded. Errors: bad_url.
  url(std::string_view host, std::uint16_t port, std::string_view name = {});
  url(std::string_view host, std::uint16_t port, std::string_view name, std::error_code& ec);

  /// Returns whether `text` is meant as a URL of ours, well-formed or not: it begins with "ucx:".
  /// Everything else is a local path.
  static bool is_meant_by(std::string_view text) noexcept;

  /// Returns the host, without brackets, in lower case but for an IPv6 address's zone.
  const std::string& host() const noexcept { return host_; }
  std::uint16_t port() const noexcept { return port_; }
  /// Returns the decoded name; empty for the server itself.
  const std::string& name() const noexcept { return name_; }
  bool empty() const noexcept { return host_.empty(); }

  /// Returns the server's URL, without a name.
  url server() const;
  /// Returns the same server with another name, which is not encoded. Errors: bad_url.
  url with_name(std::string_view name) const;

  friend bool operator==(const url&, const url&) = default;
  friend auto operator<=>(const url&, const url&) = default;

 private:
  void parse(std::string_view text, std::string& what, std::error_code& ec);
  void assign(std::string_view host, std::uint16_t port, std::string_view name, std::string& what,
              std::error_code& ec);

  std::string host_;
  std::uint16_t port_ = 0;
  std::string name_;
};

/// Returns the text form: "ucx://127.0.0.1:7471/a%20name"; empty for an empty URL.
UCXIO_EXPORT std::string to_string(const url& address);

}  // namespace ucx

template <>
struct UCXIO_EXPORT std::hash<ucx::url> {
  std::size_t operator()(const ucx::url& address) const noexcept;
};
