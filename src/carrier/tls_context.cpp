// TLS that connections have in common: the settings of OpenSSL, and its callbacks.
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/logger.hpp"
#include "carrier/tls_openssl.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Of one hash, that of the keys: else a peer could choose a cipher that no key is for.
constexpr const char* ciphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* groups = "X25519:P-256";

openssl_session& session_of(SSL* ssl) noexcept {
  return *static_cast<openssl_session*>(SSL_get_app_data(ssl));
}

std::span<const std::byte> bytes_at(const unsigned char* begin, std::size_t size) noexcept {
  return {reinterpret_cast<const std::byte*>(begin), size};
}

int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** found) {
  *found = session_of(ssl).find(bytes_at(identity, size));
  return *found != nullptr ? 1 : 0;
}

int use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                SSL_SESSION** used) {
  std::span<const std::byte> shown;
  *used = session_of(ssl).use(shown);
  *identity = reinterpret_cast<const unsigned char*>(shown.data());
  *size = shown.size();
  return *used != nullptr ? 1 : 0;
}

/// OpenSSL asks nothing about a protocol of a client that names none.
int look_at_hello(SSL* ssl, int* alert, void*) {
  const unsigned char* said = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &said,
                                &size) == 1) {
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return SSL_CLIENT_HELLO_ERROR;
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
    if (offered[at] != alpn_name[0] || offered_size - at < alpn_name.size()) continue;
    if (std::memcmp(offered + at, alpn_name.data(), alpn_name.size()) != 0) continue;
    *chosen = offered + at + 1;
    *size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int judge_certificate(int is_good, X509_STORE_CTX* at) {
  auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(at, SSL_get_ex_data_X509_STORE_CTX_idx()));
  return session_of(ssl).judge(is_good == 1, at) ? 1 : 0;
}

}  // namespace

openssl_context::owned_context openssl_context::make(const SSL_METHOD* method) noexcept {
  owned_context made(SSL_CTX_new(method));
  if (!made) return nullptr;
  SSL_CTX* const at = made.get();
  const bool fits = SSL_CTX_set_min_proto_version(at, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_max_proto_version(at, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(at, ciphers) == 1 &&
                    SSL_CTX_set1_groups_list(at, groups) == 1 &&
                    SSL_CTX_set_num_tickets(at, 0) == 1;
  if (!fits) return nullptr;
  SSL_CTX_clear_options(at, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_options(at, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(at, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                           SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(at, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(at, 0);
  return made;
}

openssl_context::owned_context openssl_context::make_server() noexcept {
  owned_context made = make(TLS_server_method());
  if (!made) return nullptr;
  SSL_CTX_set_psk_find_session_callback(made.get(), &find_session);
  SSL_CTX_set_client_hello_cb(made.get(), &look_at_hello, nullptr);
  SSL_CTX_set_alpn_select_cb(made.get(), &choose_protocol, nullptr);
  return made;
}

openssl_context::owned_context openssl_context::make_client() noexcept {
  owned_context made = make(TLS_client_method());
  if (!made) return nullptr;
  // A context without certificates trusts none: a server without the key has none that would do.
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
  const bool is_set = SSL_CTX_set_alpn_protos(made.get(), alpn_name.data(), alpn_name.size()) == 0;
  return is_set ? std::move(made) : nullptr;
}

bool openssl_context::open() noexcept {
  server_ = make_server();
  client_ = make_client();
  if (!server_ || !client_) return false;
  SSL_CTX_set_psk_use_session_callback(client_.get(), &use_session);
  return true;
}

/// A client that shows a certificate shows no token.
result<certificate_set::reading> openssl_context::read_certificates(
    const certificate_set* before) const {
  if (const auto whole = check_complete(settings_.certificates); !whole) return whole.why();
  certificate_set::contexts bare{make_server(), make_client()};
  for (SSL_CTX* const each : {bare.server.get(), bare.client.get()}) {
    if (each == nullptr) throw std::bad_alloc();
  }
  SSL_CTX_set_verify(bare.server.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     &judge_certificate);
  SSL_CTX_set_verify(bare.client.get(), SSL_VERIFY_PEER, &judge_certificate);
  return certificate_set::make(settings_.certificates, std::move(bare), wall_clock(), before);
}

result<void> openssl_context::reload_certificates() {
  if (!has_certificates()) return failure{errc::not_supported, "there are no certificates"};
  const std::lock_guard one_at_a_time(reading_);
  const auto before = certificates();
  auto read = read_certificates(before.get());
  if (!read && !before) return read.why();
  if (!read) {
    return failure{read.why().code, "the certificates stay as they were: " + read.why().text};
  }
  {
    const std::lock_guard guard(mutex_);
    certificates_ = std::move(read->made);
  }
  tokens_.tell();
  if (!read->fault_of_own) return {};
  return failure{read->fault_of_own->code,
                 "the CAs and revocation lists were read again; this side's own certificate stays "
                 "as it was: " +
                     read->fault_of_own->text};
}

std::shared_ptr<const certificate_set> openssl_context::certificates() const noexcept {
  const std::lock_guard guard(mutex_);
  return certificates_;
}

bool openssl_context::takes_certificate(std::string_view towards) const noexcept {
  return has_certificates() && !host_in(towards).empty() && !keys()->has_line_for(towards);
}

result<void> openssl_context::check_user(const std::string& towards,
                                         const std::string& stranger) const {
  const auto all = keys();
  if (takes_certificate(towards)) return {};  // it has to prove its name
  if (stranger.empty() || all->used(towards) == nullptr || all->has_just_for(towards)) return {};
  return failure{errc::not_secure, "TLS: " + stranger +
                                       "; if its server is meant, its token is one for just this "
                                       "port: `ucxio token add " +
                                       towards + '`'};
}

std::unique_ptr<tls_session> openssl_context::accept(std::shared_ptr<meeting_book> keys) {
  auto shown = keys || !settings_.accepts_certificates ? nullptr : certificates();
  if (shown) {
    SSL_CTX* const context = shown->server();
    return std::make_unique<openssl_session>(shared_from_this(), context, std::nullopt,
                                             settings_.records_per_key, meeting_part(),
                                             std::move(shown));
  }
  return std::make_unique<openssl_session>(shared_from_this(), server_.get(), std::nullopt,
                                           settings_.records_per_key,
                                           meeting_part{.expects = std::move(keys)});
}

std::unique_ptr<tls_session> openssl_context::connect(std::string towards) {
  if (towards.empty()) towards = settings_.towards;
  if (takes_certificate(towards)) {
    auto shown = certificates();
    SSL_CTX* const context = shown->client();
    return std::make_unique<openssl_session>(shared_from_this(), context, std::move(towards),
                                             settings_.records_per_key, meeting_part(),
                                             std::move(shown));
  }
  return std::make_unique<openssl_session>(shared_from_this(), client_.get(), std::move(towards),
                                           settings_.records_per_key);
}

std::unique_ptr<tls_session> openssl_context::meet(const meeting_secret& key) {
  return std::make_unique<openssl_session>(shared_from_this(), client_.get(), std::string(),
                                           settings_.records_per_key, meeting_part{.shows = key});
}

bool has_tls() noexcept { return true; }

result<std::shared_ptr<tls_context>> make_tls(const tls_settings& settings) {
  // Streams that static objects have may be used at exit, behind OpenSSL's own end.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  const bool has_certificates = names_any(settings.certificates);
  auto keys = has_certificates ? tls_keys::read(settings) : tls_keys::make(settings);
  if (!keys) return keys.why();
  const auto made = std::make_shared<openssl_context>(settings, *std::move(keys));
  if (!made->open()) {
    ERR_clear_error();
    return failure{errc::not_supported, "OpenSSL has no TLS 1.3 with the ciphers of ucxs/1"};
  }
  if (has_certificates) {
    if (const auto read = made->reload_certificates(); !read) return read.why();
  }
  return std::shared_ptr<tls_context>(made);
}

}  // namespace ucx::detail
