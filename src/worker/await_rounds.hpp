// Waiting for the threads of workers.
#pragma once

#include <span>

namespace ucx::detail {

class worker_core;

/// Waits until each worker's own thread has ended what it does now, handlers too. It waits for all
/// of them together, the longest `close_timeout` at most. Returns whether all have, and each has a
/// thread that can be waited for here.
bool await_rounds(std::span<worker_core* const> workers) noexcept;

}  // namespace ucx::detail
