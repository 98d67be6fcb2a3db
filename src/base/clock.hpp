// The clock of all deadlines.
#pragma once

#include <chrono>

namespace ucx::detail {

using clock = std::chrono::steady_clock;

}  // namespace ucx::detail
