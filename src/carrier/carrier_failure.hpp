// Why a connection over sockets did not come about, as statuses beside UCX's.
#pragma once

#include <ucp/api/ucp.h>

#include <optional>
#include <string_view>

#include "ucx/error.hpp"

namespace ucx::detail {

// From the range that UCX keeps for failures of endpoints, of which it gives none.
inline constexpr auto status_token_refused = static_cast<ucs_status_t>(-61);
inline constexpr auto status_no_tls = static_cast<ucs_status_t>(-62);
inline constexpr auto status_tls_expected = static_cast<ucs_status_t>(-63);
inline constexpr auto status_no_token = static_cast<ucs_status_t>(-64);
inline constexpr auto status_foreign_tls = static_cast<ucs_status_t>(-65);
inline constexpr auto status_ended_early = static_cast<ucs_status_t>(-66);
inline constexpr auto status_no_message = static_cast<ucs_status_t>(-67);
inline constexpr auto status_certificate_refused = static_cast<ucs_status_t>(-68);
inline constexpr auto status_server_expired = static_cast<ucs_status_t>(-69);
inline constexpr auto status_server_name = static_cast<ucs_status_t>(-70);
inline constexpr auto status_server_issuer = static_cast<ucs_status_t>(-71);
inline constexpr auto status_server_revoked = static_cast<ucs_status_t>(-72);
inline constexpr auto status_no_crl = static_cast<ucs_status_t>(-73);
inline constexpr auto status_server_use = static_cast<ucs_status_t>(-74);
inline constexpr auto status_user_refused = static_cast<ucs_status_t>(-79);
inline constexpr auto status_foreign_server = static_cast<ucs_status_t>(-78);

struct carrier_failure {
  std::string_view layer;
  errc code;
  std::string_view words;
};

/// Returns what a client is told of a server's certificate; nothing for another status.
inline std::optional<carrier_failure> certificate_failure_of(ucs_status_t status) noexcept {
  const auto not_secure = [](std::string_view words) {
    return carrier_failure{"TLS", errc::not_secure, words};
  };
  switch (static_cast<int>(status)) {
    case status_certificate_refused:
      return carrier_failure{"TLS", errc::permission_denied,
                             "the peer refused the certificate of this side, or takes none; its "
                             "log has the reason"};
    case status_server_expired:
      return not_secure("the certificate of the server has expired, or is not valid yet");
    case status_server_name:
      return not_secure(
          "the certificate of the server is for another host: none of its "
          "alternative names is that of the URL");
    case status_server_issuer:
      return not_secure("the certificate of the server is not from a CA that was named (--ca)");
    case status_server_revoked:
      return not_secure("the certificate of the server was revoked");
    case status_no_crl:
      return not_secure("the revocation lists (--crl) have none of that CA that is valid now");
    case status_server_use:
      return not_secure(
          "the certificate of the server is not for servers: its extended key usage "
          "has no serverAuth");
    default:
      return std::nullopt;
  }
}

/// Returns what one of these means; nothing for another status.
inline std::optional<carrier_failure> carrier_failure_of(ucs_status_t status) noexcept {
  switch (static_cast<int>(status)) {
    case status_token_refused:
      return carrier_failure{"TLS", errc::permission_denied,
                             "the peer refused the token: it does not accept this one, or it was "
                             "removed there"};
    case status_no_tls:
      return carrier_failure{"TLS", errc::not_secure,
                             "the peer does not speak TLS; a server in the clear is ucx+tcp://"};
    case status_tls_expected:
      return carrier_failure{"TLS", errc::not_secure,
                             "the peer speaks TLS only; its URL begins with ucxs://"};
    case status_no_token:
      return carrier_failure{
          "TLS", errc::permission_denied,
          "there is no token for this: clients have that of `ucxio token add HOST:PORT`, or the "
          "user's own (`ucxio token new own`); servers accept those of `ucxio token new NAME`"};
    case status_foreign_tls:
      return carrier_failure{"TLS", errc::protocol_error,
                             "the peer speaks TLS, but is no server of ucxs/1"};
    case status_ended_early:
      return carrier_failure{"TLS", errc::connection_refused,
                             "the peer ended the connection within the TLS handshake"};
    case status_no_message:
      return carrier_failure{"socket", errc::protocol_error,
                             "the peer sent what no peer of this library sends"};
    case status_user_refused:
      return carrier_failure{"socket", errc::permission_denied,
                             "the system or the peer does not let this user in"};
    case status_foreign_server:
      return carrier_failure{
          "socket", errc::not_secure,
          "the process that listens there is neither this user's nor root's, and "
          "its user was not named (peer_users, --peer-user)"};
    default:
      return certificate_failure_of(status);
  }
}

}  // namespace ucx::detail
