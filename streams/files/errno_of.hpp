// Errors for a program that has nothing but errno.
#pragma once

#include <system_error>

namespace ucx::detail {

/// Returns the number of the system's that comes nearest; 0 for no error.
int errno_of(std::error_code why) noexcept;

}  // namespace ucx::detail
