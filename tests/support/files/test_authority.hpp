// A CA of a test: it issues certificates, and revokes them. Nothing of it lasts longer than a day,
// and nothing depends on the date.
#pragma once

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "ucx/context.hpp"

namespace ucx::test {

/// What a certificate says. Times are seconds from now.
struct certificate_terms {
  std::string names = "URI:spiffe://cluster/build";  ///< As OpenSSL's configuration has them.
  std::string usage = "clientAuth";                  ///< Empty: nothing is said.
  long begin = -3600;
  long end = 86'000;
  std::string common_name = "nobody";
  std::string raw_uri = {};  ///< A further extension of names, with this URI as it is.
};

class test_authority {
 public:
  /// `above`: the CA that it is from; null: it is a root. `life`: how many seconds it has.
  explicit test_authority(std::filesystem::path folder, const std::string& name = "ca",
                          test_authority* above = nullptr, bool is_ca = true, long life = 86'000)
      : folder_(std::move(folder)),
        name_(name),
        above_(above),
        key_(EVP_EC_gen("P-256"), &EVP_PKEY_free) {
    owned_certificate made(blank({.end = life, .common_name = name}, key_.get()), &X509_free);
    extend(made.get(), NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (is_ca) extend(made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    above != nullptr ? above->sign(made.get()) : sign(made.get());
    certificate_ = std::move(made);
    write(ca(), 0644, [&](BIO* to) { return PEM_write_bio_X509(to, certificate_.get()); });
    list_.reset(X509_CRL_new());
    X509_CRL_set_version(list_.get(), 1);
    X509_CRL_set_issuer_name(list_.get(), X509_get_subject_name(certificate_.get()));
  }

  std::filesystem::path ca() const { return folder_ / (name_ + ".pem"); }
  std::filesystem::path crl() const { return folder_ / (name_ + ".crl"); }

  /// Writes a certificate and its key, and the CAs between it and the root. The files' names begin
  /// with `file`.
  certificate_files issue(const std::string& file, const certificate_terms& terms = {}) {
    const owned_key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const owned_certificate made(blank(terms, key.get()), &X509_free);
    if (!terms.names.empty()) extend(made.get(), NID_subject_alt_name, terms.names);
    if (!terms.usage.empty()) extend(made.get(), NID_ext_key_usage, terms.usage);
    if (!terms.raw_uri.empty()) add_uri(made.get(), terms.raw_uri);
    sign(made.get());
    const test_authority* root = this;
    while (root->above_ != nullptr) root = root->above_;
    const certificate_files files{
        folder_ / (file + ".crt"), folder_ / (file + ".key"), root->ca(), {}};
    write(files.cert, 0644, [&](BIO* to) {
      int written = PEM_write_bio_X509(to, made.get());
      for (const test_authority* each = this; each != root && written == 1; each = each->above_) {
        written = PEM_write_bio_X509(to, each->certificate_.get());
      }
      return written;
    });
    write_key(files.key, key.get());
    return files;
  }
  /// Writes a key that looks like that of a certificate, and signs as another one does.
  void forge_key(const certificate_files& of) const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> from(BIO_new_file(of.key.c_str(), "r"),
                                                         &BIO_free);
    const owned_key known(PEM_read_bio_PrivateKey(from.get(), nullptr, nullptr, nullptr),
                          &EVP_PKEY_free);
    std::string shown(200, '\0');
    std::size_t size = 0;
    BIGNUM* secret = nullptr;
    EVP_PKEY_get_octet_string_param(known.get(), OSSL_PKEY_PARAM_PUB_KEY,
                                    reinterpret_cast<unsigned char*>(shown.data()), shown.size(),
                                    &size);
    EVP_PKEY_get_bn_param(key_.get(), OSSL_PKEY_PARAM_PRIV_KEY, &secret);
    OSSL_PARAM_BLD* const parts = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(parts, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
    OSSL_PARAM_BLD_push_octet_string(parts, OSSL_PKEY_PARAM_PUB_KEY, shown.data(), size);
    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_PRIV_KEY, secret);
    OSSL_PARAM* const whole = OSSL_PARAM_BLD_to_param(parts);
    EVP_PKEY_CTX* const maker = EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr);
    EVP_PKEY* forged = nullptr;
    const bool is_made = EVP_PKEY_fromdata_init(maker) == 1 &&
                         EVP_PKEY_fromdata(maker, &forged, EVP_PKEY_KEYPAIR, whole) == 1;
    const owned_key made(forged, &EVP_PKEY_free);
    EVP_PKEY_CTX_free(maker);
    OSSL_PARAM_free(whole);
    OSSL_PARAM_BLD_free(parts);
    BN_clear_free(secret);
    if (!is_made) fail("EVP_PKEY_fromdata");
    write_key(of.key, made.get());
  }
  /// Takes a certificate back; `write_crl()` tells.
  void revoke(const certificate_files& files) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> from(BIO_new_file(files.cert.c_str(), "r"),
                                                         &BIO_free);
    const owned_certificate which(PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr),
                                  &X509_free);
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(which.get()));
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> now(
        ASN1_TIME_set(nullptr, std::time(nullptr)), &ASN1_TIME_free);
    X509_REVOKED_set_revocationDate(entry, now.get());
    X509_CRL_add0_revoked(list_.get(), entry);
  }
  /// Writes the list whole at once. It counts until `end` seconds from now.
  std::filesystem::path write_crl(long end = 86'000) {
    const auto at = [](long from_now) {
      return std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)>(
          ASN1_TIME_set(nullptr, std::time(nullptr) + from_now), &ASN1_TIME_free);
    };
    X509_CRL_set1_lastUpdate(list_.get(), at(-3600).get());
    X509_CRL_set1_nextUpdate(list_.get(), at(end).get());
    if (X509_CRL_sign(list_.get(), key_.get(), EVP_sha256()) <= 0) fail("X509_CRL_sign");
    write(crl(), 0644, [&](BIO* to) { return PEM_write_bio_X509_CRL(to, list_.get()); });
    return crl();
  }

 private:
  using owned_key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using owned_certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error(what); }

  X509* blank(const certificate_terms& terms, EVP_PKEY* key) {
    X509* const made = X509_new();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made), terms.begin);
    X509_gmtime_adj(X509_getm_notAfter(made), terms.end);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(terms.common_name.c_str()),
                               -1, -1, 0);
    X509_set_pubkey(made, key);
    return made;
  }
  static void extend(X509* of, int which, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, of, of, nullptr, nullptr, 0);
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str());
    if (made == nullptr) fail("X509V3_EXT_conf_nid: " + value);
    X509_add_ext(of, made, -1);
    X509_EXTENSION_free(made);
  }
  static void add_uri(X509* to, const std::string& uri) {
    GENERAL_NAME* const name = GENERAL_NAME_new();
    ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, uri.data(), static_cast<int>(uri.size()));
    GENERAL_NAME_set0_value(name, GEN_URI, text);
    GENERAL_NAMES* const all = GENERAL_NAMES_new();
    sk_GENERAL_NAME_push(all, name);
    const int added = X509_add1_ext_i2d(to, NID_subject_alt_name, all, 0, X509V3_ADD_APPEND);
    GENERAL_NAMES_free(all);
    if (added != 1) fail("X509_add1_ext_i2d");
  }
  static void write_key(const std::filesystem::path& file, EVP_PKEY* key) {
    write(file, 0600, [key](BIO* to) {
      return PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  void sign(X509* what) {
    const X509* const issuer = certificate_ ? certificate_.get() : what;
    X509_set_issuer_name(what, X509_get_subject_name(issuer));
    if (X509_sign(what, key_.get(), EVP_sha256()) <= 0) fail("X509_sign");
  }
  template <class Write>
  static void write(const std::filesystem::path& file, ::mode_t mode, Write to) {
    const std::string beside = file.string() + ".new";
    {
      const std::unique_ptr<BIO, decltype(&BIO_free)> made(BIO_new_file(beside.c_str(), "w"),
                                                           &BIO_free);
      if (!made || to(made.get()) != 1) fail("writing " + beside);
    }
    ::chmod(beside.c_str(), mode);
    std::filesystem::rename(beside, file);
  }

  const std::filesystem::path folder_;
  const std::string name_;
  test_authority* const above_;
  const owned_key key_;
  owned_certificate certificate_{nullptr, &X509_free};
  std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list_{nullptr, &X509_CRL_free};
  long serial_ = 0;
};

}  // namespace ucx::test
