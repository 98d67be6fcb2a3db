// The files of certificates that a context goes by.
#pragma once

#include "base/result.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

/// Returns those of a client: of the options; where these name none, those of the environment
/// (UCXIO_CERT, UCXIO_KEY, UCXIO_CA, UCXIO_CRL). A listener goes by its options alone.
certificate_files named_certificates(const certificate_files& by_options);
bool names_any(const certificate_files& files) noexcept;
/// Errors: bad_configuration (one of certificate, key and CA is missing).
result<void> check_complete(const certificate_files& files);

}  // namespace ucx::detail
