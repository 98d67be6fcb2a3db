#pragma once

// For one version.
#include <system_error>

#include "ucx/file_descriptor.hpp"
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
namespace ucx {

using sealed_copy_options [[deprecated("copy_to_memfd_options")]] = copy_to_memfd_options;

[[deprecated("copy_to_memfd")]] inline file_descriptor sealed_copy(
    const url& name, const copy_to_memfd_options& options = {}, std::error_code& ec = throws) {
  return copy_to_memfd(name, options, ec);
}
[[deprecated("copy_to_memfd")]] inline file_descriptor sealed_copy(
    const remote_region& region, const copy_to_memfd_options& options = {},
    std::error_code& ec = throws) {
  return copy_to_memfd(region, options, ec);
}

}  // namespace ucx
#endif  // UCXIO_OLD_NAMES
