// Of a build without OpenSSL.
#include "carrier/tls.hpp"
#include "carrier/tls_keys.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

namespace {

failure no_openssl() {
  return failure{errc::not_supported,
                 "this ucxio was built without OpenSSL, so there is no TLS (ucxs://)"};
}

}  // namespace

bool has_tls() noexcept { return false; }

bool derive(std::span<const std::byte>, std::string_view, std::span<std::byte>) noexcept {
  return false;
}

result<void> accept_invitation(const socket_address&, std::span<const std::byte, token_size>,
                               std::span<std::byte, token_size>, std::chrono::milliseconds) {
  return no_openssl();
}

result<std::shared_ptr<tls_context>> make_tls(const tls_settings&) { return no_openssl(); }

}  // namespace ucx::detail
