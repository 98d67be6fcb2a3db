#include "carrier/tls_certificates.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "carrier/certificate_name.hpp"
#include "carrier/guarded_file.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr int most_certificates_of_a_chain = 8;
/// RSA of 2048 bits and SHA-256, or what is as strong.
constexpr int security_level = 2;

std::string words_of_openssl() {
  const char* const words = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return words != nullptr ? words : "OpenSSL does not say why";
}

/// A key with a passphrase would have OpenSSL ask at a terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

/// Reads all of one kind. `read` is OpenSSL's function for one.
template <class T, class Read>
result<std::vector<owned_by_openssl<T>>> all_in(const file_text& text, const std::string& doing,
                                                Read read) {
  const owned_by_openssl<BIO> bytes(
      BIO_new_mem_buf(text.text().data(), static_cast<int>(text.size)));
  if (!bytes) throw std::bad_alloc();
  std::vector<owned_by_openssl<T>> made;
  ERR_clear_error();
  while (T* const one = read(bytes.get(), nullptr, &no_passphrase, nullptr)) {
    made.emplace_back(one);
  }
  const unsigned long why = ERR_peek_last_error();
  const bool is_end = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
  if (!is_end) return failure{errc::bad_configuration, doing + ": " + words_of_openssl()};
  ERR_clear_error();
  if (made.empty()) return failure{errc::bad_configuration, doing + ": it has none in PEM form"};
  return made;
}

result<std::vector<owned_by_openssl<X509>>> certificates_in(const std::filesystem::path& file,
                                                            const char* what) {
  const std::string doing = std::string("reading ") + what + " of " + file.string();
  const auto text = read_guarded(file, file_guard::trusted, 0, doing);
  if (!text) return text.why();
  return all_in<X509>(*text, doing, &PEM_read_bio_X509);
}

result<owned_by_openssl<EVP_PKEY>> key_in(const std::filesystem::path& file) {
  const std::string doing = "reading the key of " + file.string();
  const auto text = read_guarded(file, file_guard::secret, 0, doing);
  if (!text) return text.why();
  const owned_by_openssl<BIO> bytes(
      BIO_new_mem_buf(text->text().data(), static_cast<int>(text->size)));
  if (!bytes) throw std::bad_alloc();
  ERR_clear_error();
  owned_by_openssl<EVP_PKEY> made(
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, &no_passphrase, nullptr));
  if (made) return made;
  return failure{
      errc::bad_configuration,
      doing + ": it has no key in PEM form without a passphrase (" + words_of_openssl() + ')'};
}

result<owned_by_openssl<X509_STORE>> trusted_by(const certificate_files& files) {
  const auto authorities = certificates_in(files.ca, "the certificates of the CA");
  if (!authorities) return authorities.why();
  owned_by_openssl<X509_STORE> made(X509_STORE_new());
  if (!made) throw std::bad_alloc();
  for (const auto& each : *authorities) {
    if (X509_STORE_add_cert(made.get(), each.get()) != 1) throw std::bad_alloc();
  }
  if (files.crl.empty()) return made;
  const std::string doing = "reading the revocation lists of " + files.crl.string();
  const auto text = read_guarded(files.crl, file_guard::trusted, 0, doing);
  if (!text) return text.why();
  const auto lists = all_in<X509_CRL>(*text, doing, &PEM_read_bio_X509_CRL);
  if (!lists) return lists.why();
  for (const auto& each : *lists) {
    if (X509_STORE_add_crl(made.get(), each.get()) != 1) throw std::bad_alloc();
  }
  X509_STORE_set_flags(made.get(), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return made;
}

std::time_t seconds_of(const ASN1_TIME* at) noexcept {
  std::tm parts = {};
  if (at == nullptr || ASN1_TIME_to_tm(at, &parts) != 1) return 0;
  return ::timegm(&parts);
}

result<void> check_own(X509* leaf, EVP_PKEY* key, const certificate_files& files, std::time_t now) {
  if (X509_check_private_key(leaf, key) != 1) {
    ERR_clear_error();
    return failure{errc::bad_configuration, "the key of " + files.key.string() +
                                                " does not belong to the certificate of " +
                                                files.cert.string()};
  }
  const bool has_begun = seconds_of(X509_get0_notBefore(leaf)) <= now;
  if (has_begun && now < seconds_of(X509_get0_notAfter(leaf))) return {};
  return failure{errc::not_secure, "the certificate of " + files.cert.string() +
                                       (has_begun ? " has expired" : " is not valid yet")};
}

bool take_trust(SSL_CTX* at, X509_STORE* trusted) noexcept {
  SSL_CTX_set_security_level(at, security_level);
  SSL_CTX_set_mode(at, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_verify_depth(at, most_certificates_of_a_chain);
  SSL_CTX_set1_cert_store(at, trusted);
  constexpr std::array<unsigned char, 6> name{'u', 'c', 'x', 's', '/', '1'};
  return SSL_CTX_set_session_id_context(at, name.data(), name.size()) == 1;
}

bool show(SSL_CTX* at, const std::vector<owned_by_openssl<X509>>& chain, EVP_PKEY* key) noexcept {
  if (SSL_CTX_use_certificate(at, chain.front().get()) != 1) return false;
  if (SSL_CTX_use_PrivateKey(at, key) != 1) return false;
  return std::all_of(chain.begin() + 1, chain.end(), [at](const auto& each) {
    return SSL_CTX_add1_chain_cert(at, each.get()) == 1;
  });
}

/// Returns the first name of that kind, whose letters are ASCII for each; nothing where there is
/// none.
std::optional<std::string> first_name(const GENERAL_NAMES* all, int kind, const char* prefix) {
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const each = sk_GENERAL_NAME_value(all, i);
    if (each->type != kind) continue;
    const ASN1_IA5STRING* const text = each->d.ia5;
    std::string made = prefix;
    made.append(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                static_cast<std::size_t>(ASN1_STRING_length(text)));
    return made;
  }
  return std::nullopt;
}

result<certificate_set::own_pair> own_of(const certificate_files& files, std::time_t now) {
  auto chain = certificates_in(files.cert, "the certificate");
  if (!chain) return chain.why();
  auto key = key_in(files.key);
  if (!key) return key.why();
  if (const auto fits = check_own(chain->front().get(), key->get(), files, now); !fits) {
    return fits.why();
  }
  return certificate_set::own_pair{*std::move(chain), *std::move(key)};
}

}  // namespace

result<certificate_set::reading> certificate_set::make(const certificate_files& files,
                                                       contexts bare, std::time_t now,
                                                       const certificate_set* before) {
  reading read;
  auto pair = own_of(files, now);
  if (!pair && before == nullptr) return pair.why();
  if (!pair) read.fault_of_own = pair.why();
  const auto own = pair ? std::make_shared<const own_pair>(*std::move(pair)) : before->own_;
  auto trusted = trusted_by(files);
  if (!trusted) return trusted.why();
  for (SSL_CTX* const each : {bare.server.get(), bare.client.get()}) {
    ERR_clear_error();
    if (each == nullptr || !take_trust(each, trusted->get()) ||
        !show(each, own->chain, own->key.get())) {
      return failure{errc::bad_configuration,
                     "the certificate of " + files.cert.string() + ": " + words_of_openssl()};
    }
  }
  read.made = std::make_shared<certificate_set>(std::move(bare), *std::move(trusted), own);
  return read;
}

int certificate_set::verify(SSL* of, const std::string& host, std::time_t now,
                            std::time_t& until) const noexcept {
  X509* const leaf = SSL_get0_peer_certificate(of);
  const owned_by_openssl<X509_STORE_CTX> at(X509_STORE_CTX_new());
  if (leaf == nullptr || !at) return X509_V_ERR_OUT_OF_MEM;
  ERR_clear_error();
  if (X509_STORE_CTX_init(at.get(), trusted_.get(), leaf, SSL_get_peer_cert_chain(of)) != 1 ||
      X509_STORE_CTX_set_default(at.get(), host.empty() ? "ssl_client" : "ssl_server") != 1) {
    ERR_clear_error();
    return X509_V_ERR_OUT_OF_MEM;
  }
  X509_VERIFY_PARAM* const terms = X509_STORE_CTX_get0_param(at.get());
  X509_VERIFY_PARAM_set_time(terms, now);
  X509_VERIFY_PARAM_set_depth(terms, most_certificates_of_a_chain);
  X509_VERIFY_PARAM_set_auth_level(terms, security_level);
  const bool is_asked = host.empty() || expect_host(terms, host);
  const bool is_fine = is_asked && X509_verify_cert(at.get()) == 1;
  ERR_clear_error();
  if (!is_fine) {
    const int fault = X509_STORE_CTX_get_error(at.get());
    return fault != X509_V_OK ? fault : X509_V_ERR_UNSPECIFIED;
  }
  const int fault = fault_of_leaf(leaf, !host.empty());
  if (fault == X509_V_OK) until = end_of_chain(X509_STORE_CTX_get0_chain(at.get()));
  return fault;
}

bool expect_host(X509_VERIFY_PARAM* at, const std::string& host) noexcept {
  if (host.empty()) return false;  // OpenSSL would take each certificate
  X509_VERIFY_PARAM_set_hostflags(
      at, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_ip_asc(at, host.c_str()) == 1) return true;
  ERR_clear_error();
  return X509_VERIFY_PARAM_set1_host(at, host.data(), host.size()) == 1;
}

int fault_of_leaf(X509* leaf, bool is_server) noexcept {
  const std::uint32_t wanted = is_server ? XKU_SSL_SERVER : XKU_SSL_CLIENT;
  // Where the certificate says nothing, OpenSSL takes it for each use.
  const bool says = (X509_get_extension_flags(leaf) & EXFLAG_XKUSAGE) != 0;
  if (!says || (X509_get_extended_key_usage(leaf) & wanted) == 0) return X509_V_ERR_INVALID_PURPOSE;
  if (is_server) return X509_V_OK;
  try {
    return name_of_certificate(leaf).empty() ? fault_no_name : X509_V_OK;
  } catch (const std::bad_alloc&) {
    return X509_V_ERR_OUT_OF_MEM;
  }
}

std::string name_of_certificate(X509* leaf) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  ERR_clear_error();
  if (!all) return {};
  std::optional<std::string> name = first_name(all.get(), GEN_URI, "uri:");
  if (!name) name = first_name(all.get(), GEN_DNS, "dns:");
  if (!name) name = first_name(all.get(), GEN_EMAIL, "email:");
  if (!name || !complaint_about_certificate_name(*name).empty()) return {};
  return comparable_certificate_name(*name);
}

std::time_t end_of_chain(const STACK_OF(X509) * chain) noexcept {
  std::time_t first = chain != nullptr ? std::numeric_limits<std::time_t>::max() : 0;
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    first = std::min(first, seconds_of(X509_get0_notAfter(sk_X509_value(chain, i))));
  }
  return first;
}

const char* words_of_fault(int fault) noexcept {
  if (fault == fault_no_name)
    return "it has no URI, DNS name or e-mail address that rules can name";
  if (fault == X509_V_ERR_INVALID_PURPOSE) return "its extended key usage is not for this side";
  return X509_verify_cert_error_string(fault);
}

}  // namespace ucx::detail
