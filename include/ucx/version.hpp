// The version of the library, and the macros of the headers.
#pragma once

#include <compare>
#include <string>

#include "ucx/to_string.hpp"

/// Marks what the shared libraries export; everything else is hidden.
#if defined(__GNUC__)
#define UCXIO_EXPORT [[gnu::visibility("default")]]
#else
#define UCXIO_EXPORT
#endif

/// With 1, names and orders of parameters that have gone stay for one version, deprecated. A
/// program that defines it as 0 does not see them.
#ifndef UCXIO_OLD_NAMES
#define UCXIO_OLD_NAMES 1
#endif

namespace ucx {

/// A version of this library, or of UCX: ordered and printable.
struct version_number {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;

  friend auto operator<=>(const version_number&, const version_number&) = default;
};

/// Returns "major.minor.patch".
UCXIO_EXPORT std::string to_string(version_number version);

template <>
inline constexpr bool detail::is_printed<version_number> = true;

/// Returns the version of the ucxio library that the program runs with.
UCXIO_EXPORT version_number version() noexcept;

/// Returns the version of the UCX library that the program runs with. It may be newer than the one
/// that ucxio was built against.
UCXIO_EXPORT version_number ucx_version() noexcept;

/// Returns the version of the wire protocol (`docs/reference/wire-format.md`) that this library
/// speaks.
UCXIO_EXPORT unsigned protocol_version() noexcept;

#if UCXIO_OLD_NAMES
[[deprecated("ucx_version()")]] inline version_number transport_version() noexcept {
  return ucx_version();
}
#endif

}  // namespace ucx
