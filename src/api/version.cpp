#include "ucx/version.hpp"

#include "ucp/ucp_api.hpp"
#include "wire/protocol.hpp"

namespace ucx {

std::string to_string(version_number version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' +
         std::to_string(version.patch);
}

version_number version() noexcept {
  return {UCXIO_VERSION_MAJOR, UCXIO_VERSION_MINOR, UCXIO_VERSION_PATCH};
}

version_number ucx_version() noexcept {
  version_number found;
  detail::real_ucp().get_version(&found.major, &found.minor, &found.patch);
  return found;
}

unsigned protocol_version() noexcept { return detail::protocol_version_number; }

}  // namespace ucx
