// Waiting for what the threads of workers are at.
#pragma once

#include <span>

namespace ucx::detail {

class worker_core;

/// Waits until the own thread of each worker has ended what it does now, handlers too: for all of
/// them together, the longest `close_timeout` at most. Returns whether all have, and each has a
/// thread that can be waited for here.
bool await_rounds(std::span<worker_core* const> workers) noexcept;

}  // namespace ucx::detail
