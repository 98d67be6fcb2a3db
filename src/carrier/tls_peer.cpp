// Whom a handshake by TLS has proven, why it failed, and whether a certificate still counts.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "carrier/carrier_failure.hpp"
#include "carrier/tls_openssl.hpp"

namespace ucx::detail {
namespace {

/// The clock may be set: so often it is looked at.
constexpr std::chrono::seconds between_looks_at_clock{60};

bool is_alert(unsigned long code) noexcept {
  return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET;
}

/// The first bytes of another program look so to OpenSSL.
bool is_no_tls(int reason) noexcept {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_HTTPS_PROXY_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_BAD_RECORD_TYPE || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

}  // namespace

tls_session::handshake openssl_session::failed_by_alert(int alert, const char* words) noexcept {
  const bool is_foreign =
      alert == SSL_AD_NO_APPLICATION_PROTOCOL || alert == SSL_AD_PROTOCOL_VERSION;
  if (is_foreign) return failed(status_foreign_tls, words);
  return failed(towards_ && certificates_ ? status_certificate_refused : status_token_refused,
                words);
}

/// The first error is the cause, but an alert says what the peer thinks of it.
tls_session::handshake openssl_session::failed_in_openssl() noexcept {
  unsigned long cause = 0;
  bool has_alert = false;
  while (const unsigned long code = ERR_get_error()) {
    if (cause == 0 || (is_alert(code) && !has_alert)) cause = code;
    has_alert = has_alert || is_alert(code);
  }
  if (fault_ != X509_V_OK) return failed(status_of_fault(), "its certificate is not accepted");
  const char* const known = ERR_reason_error_string(cause);
  const char* const words = known != nullptr ? known : "OpenSSL does not say why";
  const int reason = ERR_GET_REASON(cause);
  if (has_alert) return failed_by_alert(reason - SSL_AD_REASON_OFFSET, words);
  return failed(is_no_tls(reason) ? status_no_tls : status_foreign_tls, words);
}

/// A client is told that of a server's certificate. A server tells its log.
ucs_status_t openssl_session::status_of_fault() const noexcept {
  switch (fault_) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return status_server_expired;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return status_server_name;
    case X509_V_ERR_CERT_REVOKED:
      return status_server_revoked;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return status_no_crl;
    case X509_V_ERR_INVALID_PURPOSE:
      return status_server_use;
    case X509_V_ERR_OUT_OF_MEM:
      return UCS_ERR_NO_MEMORY;
    default:
      return status_server_issuer;
  }
}

/// One alert for all: a stranger does not learn what is wrong. The log does.
bool openssl_session::judge(bool is_good, X509_STORE_CTX* at) noexcept {
  X509* const leaf = X509_STORE_CTX_get0_cert(at);
  const bool is_leaf = X509_STORE_CTX_get_error_depth(at) == 0;
  int fault = is_good ? X509_V_OK : X509_STORE_CTX_get_error(at);
  if (!is_good && fault == X509_V_OK) fault = X509_V_ERR_UNSPECIFIED;
  if (is_good && is_leaf) fault = fault_of_leaf(leaf, towards_.has_value());
  try {
    if (!towards_ && leaf != nullptr) {
      if (fault != X509_V_OK) claimed_ = name_of_certificate(leaf);
      if (fault == X509_V_OK && is_leaf) certificate_ = name_of_certificate(leaf);
    }
  } catch (const std::bad_alloc&) {
    fault = X509_V_ERR_OUT_OF_MEM;
  }
  if (fault == X509_V_OK) return true;
  if (fault_ == X509_V_OK) fault_ = fault;
  certificate_.clear();
  X509_STORE_CTX_set_error(at, towards_ ? fault : X509_V_ERR_APPLICATION_VERIFICATION);
  return false;
}

bool openssl_session::is_as_agreed() noexcept {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
  const bool is_ours = SSL_version(ssl_.get()) == TLS1_3_VERSION && size + 1U == alpn_name.size() &&
                       std::memcmp(chosen, alpn_name.data() + 1, size) == 0;
  if (!is_ours) return false;
  if (SSL_session_reused(ssl_.get()) != 1) return certificates_ && has_proven_certificate();
  certificate_.clear();
  return !(towards_ && certificates_);
}

/// OpenSSL may have asked for the key of a token that the peer named, and not have used it.
bool openssl_session::has_proven_certificate() noexcept {
  peer_.clear();
  identity_ = {};
  has_shown_token_ = false;
  has_shown_code_ = false;
  const bool is_good = fault_ == X509_V_OK && SSL_get0_peer_certificate(ssl_.get()) != nullptr &&
                       SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  if (!is_good) return false;
  certificate_end_ = end_of_chain(SSL_get0_verified_chain(ssl_.get()));
  return towards_ || !certificate_.empty();
}

/// The server looks at the certificate when this side's handshake is done.
void openssl_session::note_alert() noexcept {
  const unsigned long code = ERR_peek_last_error();
  if (!is_open_ || !towards_ || !certificates_ || !is_alert(code)) return;
  why_ = status_certificate_refused;
  if (const char* const words = ERR_reason_error_string(code)) reason_ = words;
}

std::string openssl_session::words() const {
  std::string text = reason_;
  if (fault_ != X509_V_OK) {
    text += std::string(": ") + words_of_fault(fault_);
    return claimed_.empty() ? text : text + "; it claims to be \"" + claimed_ + '"';
  }
  if (meeting_.expects) return text + "; no key that it shows is expected here";
  if (has_shown_code_) return text + "; it names the code of an invitation";
  if (!towards_ && !peer_.empty()) text += "; it names the token \"" + peer_ + "\"";
  if (!towards_ && has_shown_token_ && peer_.empty()) text += "; its token is not accepted here";
  return text;
}

const char* openssl_session::certificate_fault() noexcept {
  if (!certificate_end_) return nullptr;
  const std::time_t now = context_->wall_clock();
  if (now >= *certificate_end_) return words_of_fault(X509_V_ERR_CERT_HAS_EXPIRED);
  std::shared_ptr<const certificate_set> present = context_->certificates();
  if (present == certificates_) return nullptr;
  const int fault = present->verify(ssl_.get(), host_, now, *certificate_end_);
  if (fault != X509_V_OK) return words_of_fault(fault);
  certificates_ = std::move(present);
  return nullptr;
}

std::optional<std::chrono::seconds> openssl_session::certificate_time() const noexcept {
  if (!certificate_end_) return std::nullopt;
  const std::chrono::seconds left(*certificate_end_ - context_->wall_clock());
  return std::clamp(left, std::chrono::seconds(0), between_looks_at_clock);
}

}  // namespace ucx::detail
