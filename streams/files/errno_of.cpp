#include "files/errno_of.hpp"

#include <cerrno>

#include "ucx/error.hpp"

namespace ucx::detail {

int errno_of(std::error_code why) noexcept {
  if (!why) return 0;
  // Errors that stand for one of std::errc, as docs/reference/errors.md has it.
  const std::error_condition portable = why.default_error_condition();
  if (portable.category() == std::generic_category()) return portable.value();
  if (why.category() != error_category()) return EIO;
  switch (static_cast<errc>(why.value())) {
    case errc::stale_region:
    case errc::revoked:
    case errc::content_changed:
      return ESTALE;
    case errc::host_not_found:
      return EHOSTUNREACH;
    default:
      return EIO;
  }
}

}  // namespace ucx::detail
