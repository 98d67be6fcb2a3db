#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
struct url_reader;
}

/// The address of a server, or of a published name: `ucx://host:port/name`, by UCX. By a TCP socket
/// without UCX it is `ucx+tcp://host:port/name`, and with TLS `ucxs://host:port/name`. A value. The
/// host is a name, an IPv4 address, or an IPv6 address in brackets. The port is always there. The
/// name is everything after the next slash. It is percent-encoded in the text (RFC 3986) and
/// decoded here: UTF-8 of up to 1024 bytes, which may contain slashes.
///
/// A server of this machine may be `ucx+unix:///path/server.sock/name`: a Unix socket. The path is
/// absolute and ends at its first component that ends in ".sock". It is percent-encoded, too.
///
/// A server without an IP address is `ucx+file://path/name`. The path is that of the file which the
/// server wrote (`server::publish_address`). It begins at "/", or in the working directory of the
/// moment. It ends at the first component that is a file. It is percent-encoded like the name.
class UCXIO_EXPORT url {
 public:
  /// The most bytes of a decoded name.
  static constexpr std::size_t max_name_size = 1024;

  /// Makes an empty URL, which names no server.
  url() noexcept = default;
  /// Reads the text form. Looks up only the address file of "ucx+file:", which has to be there.
  /// Errors: bad_url; connection_refused (no address file), permission_denied; the text says what
  /// is wrong, and where.
  explicit url(std::string_view text, std::error_code& ec = throws);
  /// Makes a URL of a host, a port and a name. `name` is not encoded.
  /// Errors: bad_url.
  url(std::string_view host, std::uint16_t port, std::string_view name = {},
      std::error_code& ec = throws);

  /// Likewise, of a server that is reached by a socket without UCX: `ucx+tcp://host:port/name`.
  static url over_socket(std::string_view host, std::uint16_t port, std::string_view name = {},
                         std::error_code& ec = throws);

  /// Likewise, with TLS: `ucxs://host:port/name`.
  static url over_tls(std::string_view host, std::uint16_t port, std::string_view name = {},
                      std::error_code& ec = throws);

  /// Likewise, of a server of this machine that is reached by a Unix socket:
  /// `ucx+unix:///path/server.sock/name`. `path` is absolute, has at most 107 bytes, and only its
  /// last component ends in ".sock".
  static url over_unix(std::string_view path, std::string_view name = {},
                       std::error_code& ec = throws);

  /// Makes the URL of a server that wrote its address into `file`, or of one of the server's names.
  /// Neither is encoded. The file does not have to exist.
  /// Errors: bad_url.
  static url from_address_file(std::string_view file, std::string_view name = {},
                               std::error_code& ec = throws);

  /// Returns whether `text` is meant as a URL of this library, well-formed or not: it begins with
  /// "ucx:", "ucxs:", "ucx+tcp:", "ucx+unix:" or "ucx+file:". Every other text is a local path.
  static bool has_url_scheme(std::string_view text) noexcept;

  /// Returns the path of the file that has the server's address; empty for a URL with a host.
  const std::string& address_file() const noexcept { return address_file_; }
  /// Returns the path of the server's Unix socket; empty for other URLs.
  const std::string& socket_file() const noexcept { return socket_file_; }
  /// Returns the host, without brackets. It is in lower case, except the zone of an IPv6 address.
  const std::string& host() const noexcept { return host_; }
  std::uint16_t port() const noexcept { return port_; }
  /// Returns whether the server is reached by a socket, without UCX: the scheme is "ucx+tcp:"
  /// "ucxs:" or "ucx+unix:".
  bool is_socket() const noexcept { return is_socket_; }
  /// Returns whether that is by TLS: the scheme is "ucxs:".
  bool is_tls() const noexcept { return is_tls_; }
  /// Returns the decoded name; empty for the server itself.
  const std::string& name() const noexcept { return name_; }
  bool empty() const noexcept {
    return host_.empty() && address_file_.empty() && socket_file_.empty();
  }

  /// Returns the server's URL, without a name.
  url server() const;
  /// Returns the URL of another name of this server. `name` is not encoded.
  /// Errors: bad_url, also for an empty URL.
  url with_name(std::string_view name, std::error_code& ec = throws) const;

  friend bool operator==(const url&, const url&) = default;
  friend auto operator<=>(const url&, const url&) = default;

#if UCXIO_OLD_NAMES
  [[deprecated("max_name_size")]] static constexpr std::size_t longest_name = max_name_size;
  [[deprecated("has_url_scheme()")]] static bool is_meant_by(std::string_view text) noexcept {
    return has_url_scheme(text);
  }
  [[deprecated("from_address_file()")]] static url of_address_file(std::string_view file,
                                                                   std::string_view name = {},
                                                                   std::error_code& ec = throws) {
    return from_address_file(file, name, ec);
  }
#endif

 private:
  friend struct detail::url_reader;

  std::string address_file_;
  std::string socket_file_;
  std::string host_;
  std::uint16_t port_ = 0;
  bool is_socket_ = false;
  bool is_tls_ = false;
  std::string name_;
};

/// Returns the text form: "ucx://127.0.0.1:7471/a%20name"; empty for an empty URL.
UCXIO_EXPORT std::string to_string(const url& address);

template <>
inline constexpr bool detail::is_printed<url> = true;

}  // namespace ucx

template <>
struct UCXIO_EXPORT std::hash<ucx::url> {
  std::size_t operator()(const ucx::url& address) const noexcept;
};
