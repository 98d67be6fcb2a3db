#include "carrier/named_certificates.hpp"

#include <cstdlib>
#include <filesystem>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

std::filesystem::path path_in(const char* variable) {
  const char* const text = ::secure_getenv(variable);
  return text != nullptr ? std::filesystem::path(text) : std::filesystem::path();
}

}  // namespace

certificate_files named_certificates(const certificate_files& by_options) {
  if (names_any(by_options)) return by_options;
  certificate_files made;
  made.cert = path_in("UCXIO_CERT");
  made.key = path_in("UCXIO_KEY");
  made.ca = path_in("UCXIO_CA");
  made.crl = path_in("UCXIO_CRL");
  return made;
}

bool names_any(const certificate_files& files) noexcept {
  return !files.cert.empty() || !files.key.empty() || !files.ca.empty() || !files.crl.empty();
}

result<void> check_complete(const certificate_files& files) {
  if (!files.cert.empty() && !files.key.empty() && !files.ca.empty()) return {};
  const char* const missing = files.cert.empty()  ? "the certificate (--cert, UCXIO_CERT)"
                              : files.key.empty() ? "its key (--key, UCXIO_KEY)"
                                                  : "that of the CA (--ca, UCXIO_CA)";
  return failure{errc::bad_configuration,
                 std::string("certificates need three files: one is missing, ") + missing};
}

}  // namespace ucx::detail
