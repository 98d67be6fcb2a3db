// The parts of a worker, put together.
#pragma once

#include <memory>

#include "worker/worker_parts.hpp"

namespace ucx::detail {

/// Makes them for a worker that is being made.
std::unique_ptr<worker_parts> assemble_parts(worker_core& worker);

}  // namespace ucx::detail
