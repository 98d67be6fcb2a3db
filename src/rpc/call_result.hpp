// The result of a call: shared by the operation and by the request of the program.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "ucx/call_reader.hpp"
#include "ucx/hybrid_clock.hpp"

namespace ucx::detail {

/// Written under the worker's lock before the operation ends, and only read behind that.
struct call_result {
  std::vector<std::byte> bytes = {};    ///< The body of the answer.
  std::vector<landed_part> parts = {};  ///< The memory beside it.
  std::error_code cause = {};           ///< The code of what the function threw.
  clock_stamp clock = {};               ///< When the answer came.
};

}  // namespace ucx::detail
