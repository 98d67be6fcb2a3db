// The certificates that a context shows and trusts, as their files had them at one moment.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

struct openssl_release {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* session) const noexcept { SSL_free(session); }
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(X509_CRL* list) const noexcept { X509_CRL_free(list); }
  void operator()(X509_STORE* store) const noexcept { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const noexcept { X509_STORE_CTX_free(context); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};

template <class T>
using owned_by_openssl = std::unique_ptr<T, openssl_release>;

/// The verdict on a peer whose certificate has none of the names that rules know.
inline constexpr int fault_no_name = X509_V_ERR_APPLICATION_VERIFICATION;

/// A value that does not change. Safe from any thread.
class certificate_set {
 public:
  /// The settings of a side, without certificates.
  struct contexts {
    owned_by_openssl<SSL_CTX> server;
    owned_by_openssl<SSL_CTX> client;
  };

  /// The chain begins with the certificate of the key.
  struct own_pair {
    std::vector<owned_by_openssl<X509>> chain;
    owned_by_openssl<EVP_PKEY> key;
  };
  struct reading {
    std::shared_ptr<const certificate_set> made;
    std::optional<failure> fault_of_own;  ///< Why it shows what it has shown before.
  };

  certificate_set(contexts made, owned_by_openssl<X509_STORE> trusted,
                  std::shared_ptr<const own_pair> own) noexcept
      : contexts_(std::move(made)), trusted_(std::move(trusted)), own_(std::move(own)) {}

  /// `before`: the set that it replaces, or null. Where this side's own files are at fault, that
  /// one is shown on, so that whom the others revoke is refused all the same.
  /// Errors: bad_configuration (also: the key is of another certificate), no_such_name, not_secure
  /// (others may read the key, or write another file; the certificate has expired), and the
  /// system's.
  static result<reading> make(const certificate_files& files, contexts bare, std::time_t now,
                              const certificate_set* before);

  SSL_CTX* server() const noexcept { return contexts_.server.get(); }
  SSL_CTX* client() const noexcept { return contexts_.client.get(); }

  /// Looks at the certificate of a connection's peer again. `host` is that of a server, and empty
  /// for a client. Returns X509_V_OK, or what is wrong; `until` is then as it was.
  int verify(SSL* of, const std::string& host, std::time_t now, std::time_t& until) const noexcept;

 private:
  contexts contexts_;
  owned_by_openssl<X509_STORE> trusted_;
  std::shared_ptr<const own_pair> own_;
};

/// Has a server's certificate be for this host, a name or an address, by its alternative names.
/// Returns whether it will be; false for an empty host.
bool expect_host(X509_VERIFY_PARAM* at, const std::string& host) noexcept;
/// Returns what the verification of a chain does not look at. `is_server`: the certificate is that
/// of a server.
int fault_of_leaf(X509* leaf, bool is_server) noexcept;
/// Returns the name that rules have for a certificate (`certificate_name.hpp`): the first URI, else
/// the first DNS name, else the first e-mail address. Empty where that is no name of rules.
std::string name_of_certificate(X509* leaf);
/// Returns when the first of a chain's certificates expires.
std::time_t end_of_chain(const STACK_OF(X509) * chain) noexcept;
const char* words_of_fault(int fault) noexcept;

}  // namespace ucx::detail
